#include "question/advise/suggestions.h"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <span>

#include "base/threads.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "job/step_cost.h"
#include "question/advise/confidence.h"
#include "question/advise/rejection.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

constexpr std::string_view kDevice = "<device>", kNetwork = "<network>", kAlgorithm = "<algorithm>";

std::string_view to_string(Goal goal) {
  constexpr std::string_view kNames[] = {"none", "time", "throughput", "memory", "device"};
  return kNames[static_cast<std::size_t>(goal)];
}

/// The result of one try.
struct Outcome {
  const TransformEntry* transform = nullptr;
  std::string use;
  /// Time per recorded number of samples, if the try was screened.
  Nanoseconds time = Nanoseconds::max();
  std::string refused;
};

const DeviceModel& recorded_device(const Graph& graph) {
  std::string unknown;
  for (const std::string& name : graph.device_names()) {
    if (name.empty()) continue;
    if (const DeviceModel* device = device_recorded_as(name)) return *device;
    unknown = name;
  }
  if (unknown.empty()) throw Error("the trace does not name its device");
  throw Error(
      fmt::format("the device {} is not a built-in one: see faster_device:from=FILE", unknown));
}

/// The maker: the first word of the source of the figures ("recalled: NVIDIA A100 data sheet").
std::string_view maker_of(const DeviceModel& device) {
  std::string_view source = device.source;
  if (const std::size_t colon = source.find(": "); colon != source.npos)
    source.remove_prefix(colon + 2);
  return source.substr(0, source.find(' '));
}

/// From the same maker's devices with clearly more arithmetic and more bandwidth: the next two, and
/// the one with the most bandwidth.
std::vector<std::string> devices_above(const Graph& graph) {
  const auto arithmetic = [](const DeviceModel& device) {
    return std::max({device.fp16, device.bf16, device.fp32}).flops_per_second;
  };
  const DeviceModel& now = recorded_device(graph);
  std::vector<DeviceModel> above;
  for (const std::string_view name : device_names()) {
    DeviceModel device = find_device(name);
    constexpr double kClearly = 1.1;
    if (maker_of(device) != maker_of(now)) continue;
    if (arithmetic(device) < kClearly * arithmetic(now)) continue;
    if (device.memory_bandwidth.bytes_per_second < kClearly * now.memory_bandwidth.bytes_per_second)
      continue;
    above.push_back(std::move(device));
  }
  if (above.empty()) throw Error("no built-in device of its maker is clearly faster " + now.name);
  std::stable_sort(above.begin(), above.end(), [](const auto& a, const auto& b) {
    return a.memory_bandwidth < b.memory_bandwidth;
  });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < above.size(); ++i) {
    if (i < 2 || i + 1 == above.size()) names.push_back(above[i].name);
  }
  return names;
}

/// The algorithm of most recorded collectives; NCCL puts it into the names of its kernels.
std::string recorded_algorithm(const Graph& graph) {
  std::size_t trees = 0;
  for (const RecordedCollective& one : graph.collectives()) {
    const std::string_view name = graph.name(one.task);
    trees += name.find("TREE") != name.npos || name.find("Tree") != name.npos;
  }
  return 2 * trees > graph.collectives().size() ? "double_tree" : "ring";
}

void fill(std::string& text, std::string_view place, const std::string& with) {
  for (std::size_t at = text.find(place); at != text.npos; at = text.find(place, at + with.size()))
    text.replace(at, place.size(), with);
}

/// The tries of a transform, with placeholders filled in. Throws Error with the reason if they need
/// a network and none was given, or no faster device is known.
std::vector<std::string> tries_of(const AdvicePolicy& policy, const Graph& graph,
                                  const std::string& network) {
  std::vector<std::string> tries;
  for (const std::string_view text : policy.tries) {
    if (text.find(kNetwork) != text.npos) {
      if (network.empty()) throw Error(std::string(policy.why_not));
      std::string filled(text);
      fill(filled, kNetwork, network);
      fill(filled, kAlgorithm, recorded_algorithm(graph));
      tries.push_back(std::move(filled));
      continue;
    }
    const std::size_t at = text.find(kDevice);
    if (at == text.npos) {
      tries.emplace_back(text);
      continue;
    }
    for (const std::string& device : devices_above(graph))
      tries.push_back(
          fmt::format("{}{}{}", text.substr(0, at), device, text.substr(at + kDevice.size())));
  }
  return tries;
}

std::string why_not_of(const AdvisedJob& job, const Suggestion& suggestion) {
  if (!suggestion.fits) return "does not fit into the device's memory";
  const auto share =
      static_cast<double>(suggestion.gain.count()) / static_cast<double>(job.now().count());
  if (suggestion.goal == "throughput") {
    if (share <= 0) return "gains nothing per sample";
    return fmt::format("gains {} per sample: within noise", to_share(share));
  }
  if (suggestion.gain < 0ns && !job.matters(-suggestion.gain)) return "gains nothing";
  if (suggestion.gain < 0ns) return "makes steps longer by " + to_share(-share);
  if (suggestion.gain == 0ns) return "gains nothing";
  return fmt::format("gains {}: within noise", to_share(share));
}

/// Transforms that cost time are meant to save memory: they help if the peak falls by more than 1
/// %.
bool frees_memory(const AdvisedJob& job, const Suggestion& suggestion) {
  const auto before = greatest_allocated(job.baseline.prediction.baseline_memory);
  return before && suggestion.allocated && suggestion.allocated->count < before->count * 99 / 100;
}

void judge(const AdvisedJob& job, const Ceilings& ceilings, Suggestion& suggestion) {
  if (suggestion.goal == "memory") {
    suggestion.recommended = suggestion.fits && frees_memory(job, suggestion);
    if (!suggestion.recommended) {
      suggestion.why_not = !suggestion.fits       ? "does not fit into the device's memory"
                           : suggestion.allocated ? "the peak does not fall"
                                                  : "the trace does not record memory";
    }
    return;
  }
  suggestion.why_not = rejection_reason(job, ceilings, suggestion);
  suggestion.is_rejected = !suggestion.why_not.empty();
  suggestion.recommended =
      !suggestion.is_rejected && suggestion.fits && job.matters(suggestion.gain);
  if (!suggestion.recommended && !suggestion.is_rejected)
    suggestion.why_not = why_not_of(job, suggestion);
}

void refuse_idle(const AppliedStep& step) {
  if (!step.changed_nothing) return;
  throw Error(step.applies.share <= 0 ? step.applies.why_not : "changes nothing: " + step.summary);
}

/// A suggestion, before it is decided whether to recommend it; `doubt` is included.
Suggestion suggested(const AdvisedJob& job, const AdvicePolicy& policy, const std::string& use) {
  const Scenario scenario = scenario_with({use});
  Edited edited = edited_by(job, scenario, {.reasons = true});
  refuse_idle(edited.applied.steps.front());
  const Prediction prediction = predict_edited(job.baseline, job.inference, scenario, edited, {});
  const AppliedStep& step = prediction.steps.front();
  Suggestion suggestion;
  suggestion.use = use;
  suggestion.goal = to_string(policy.goal);
  suggestion.summary = step.summary;
  suggestion.step_time = prediction.predicted.step_time;
  suggestion.lower = prediction.lower;
  suggestion.upper = prediction.upper;
  suggestion.samples = policy.samples;
  suggestion.gain = job.now() - scaled(suggestion.step_time, 1 / policy.samples);
  suggestion.allocated = greatest_allocated(prediction.predicted_memory);
  suggestion.reserved = greatest_reserved(prediction.predicted_memory);
  for (const MemoryPeak& peak : prediction.predicted_memory)
    suggestion.fits = suggestion.fits && !peak.out_of_memory;
  const std::vector<std::string>& known = job.baseline.prediction.assumptions;
  for (const std::string& assumption : prediction.assumptions) {
    if (std::find(known.begin(), known.end(), assumption) == known.end())
      suggestion.assumptions.push_back(assumption);
  }
  suggestion.trust = prediction.trust;
  suggestion.applies = step.applies;
  suggestion.path = path_shares(edited.graph, edited.timeline);
  suggestion.local = local_gain(job, edited.graph);
  suggestion.doubt =
      doubt_of(job, edited.graph,
               std::max(suggestion.gain, suggestion.local.before - suggestion.local.after));
  return suggestion;
}

/// Decides whether to recommend a suggestion, and how certain it is. Only suggestions recommended
/// for time keep their doubt.
void conclude(const AdvisedJob& job, const Ceilings& ceilings, Suggestion& suggestion) {
  judge(job, ceilings, suggestion);
  if (!suggestion.recommended || suggestion.goal != "time") suggestion.doubt.clear();
  suggestion.confidence = confidence_of(job, suggestion);
}

/// Runs one try; the error of an impossible one becomes its reason.
template <class Run>
void attempt(Outcome& outcome, const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    outcome.refused = without_place(error.what(), outcome.use);
    outcome.time = Nanoseconds::max();
  }
}

/// Replays a try only for its step time, to choose among the tries of a transform.
void screen(const AdvisedJob& job, Outcome& outcome) {
  attempt(outcome, [&] {
    const Edited edited =
        edited_by(job, scenario_with({outcome.use}), {.reasons = false, .memory = false});
    const AppliedStep& step = edited.applied.steps.front();
    refuse_idle(step);
    if (step.applies.share <= 0) throw Error(step.applies.why_not);
    outcome.time = scaled(edited.step_time(), 1 / outcome.transform->advice.samples);
  });
}

/// The first of the tries for one transform that is nearly as good as the best; nullptr if all are
/// refused.
Outcome* chosen(const AdvisedJob& job, std::span<Outcome> tried) {
  Nanoseconds best = Nanoseconds::max();
  for (const Outcome& outcome : tried) best = std::min(best, outcome.time);
  if (best == Nanoseconds::max()) return nullptr;
  const Nanoseconds enough = scaled(best, 1 + job.noise);
  return &*std::find_if(tried.begin(), tried.end(),
                        [&](const Outcome& outcome) { return outcome.time <= enough; });
}

/// Turns the tries for one transform into suggestions: the best of them, or every device.
std::vector<Suggestion> answered(const AdvisedJob& job, std::span<Outcome> tried) {
  const AdvicePolicy& policy = tried.front().transform->advice;
  std::vector<Suggestion> suggestions;
  const auto suggest = [&](Outcome& outcome) {
    attempt(outcome, [&] { suggestions.push_back(suggested(job, policy, outcome.use)); });
  };
  if (policy.goal == Goal::device || tried.size() == 1) {
    for (Outcome& outcome : tried) suggest(outcome);
    return suggestions;
  }
  for (Outcome& outcome : tried) screen(job, outcome);
  while (Outcome* const outcome = suggestions.empty() ? chosen(job, tried) : nullptr)
    suggest(*outcome);
  return suggestions;
}

/// Marks suggestions for time that apply to the same work as a better, recommended one.
void note_alternatives(std::vector<Suggestion>& suggestions) {
  for (std::size_t i = 0; i < suggestions.size(); ++i) {
    for (std::size_t better = 0; better < i && suggestions[i].instead_of.empty(); ++better) {
      if (suggestions[better].recommended && suggestions[better].goal == "time" &&
          suggestions[i].goal == "time" &&
          !common_work(suggestions[better].use, suggestions[i].use).empty())
        suggestions[i].instead_of = suggestions[better].use;
    }
  }
}

void check_names(const std::vector<std::string>& names, std::string_view option) {
  std::vector<std::string_view> known;
  for (const TransformEntry& entry : transforms()) known.push_back(entry.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error(
        fmt::format("{}: there is no transform \"{}\"{}", option, name, did_you_mean(name, known)));
  }
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The transforms to try; the others are listed with the reason.
std::vector<Outcome> to_try(const AdvisedJob& job, const AdviceQuestion& question,
                            TriedTransforms& tried) {
  std::vector<Outcome> tries;
  for (const TransformEntry& entry : transforms()) {
    const std::string name(entry.name);
    if (has(question.skip, name) || (!question.only.empty() && !has(question.only, name))) continue;
    if (entry.advice.goal == Goal::none) {
      tried.no_advice.push_back({name, std::string(entry.advice.why_not)});
      continue;
    }
    try {
      for (std::string& use : tries_of(entry.advice, job.inference.graph, question.network))
        tries.push_back({.transform = &entry, .use = std::move(use), .refused = {}});
    } catch (const Error& error) {
      tried.not_applicable.push_back({name, error.what()});
    }
  }
  return tries;
}

std::vector<std::span<Outcome>> by_transform(std::vector<Outcome>& tries) {
  std::vector<std::span<Outcome>> groups;
  for (auto begin = tries.begin(); begin != tries.end();) {
    const auto end = std::find_if(begin, tries.end(), [&](const Outcome& outcome) {
      return outcome.transform != begin->transform;
    });
    groups.emplace_back(begin, end);
    begin = end;
  }
  return groups;
}

int rank_of(std::string_view word) { return word == "high" ? 0 : word == "medium" ? 1 : 2; }

bool applies_to(const Suggestion& one, std::string_view work) {
  const auto& works = advice_policy(one.use).applies_to;
  return std::find(works.begin(), works.end(), work) != works.end();
}

/// Sorts by gain. Among the suggestions for time that are about as good as the best, the most
/// certain comes first; transforms that load data in time come before compilers and graphs, because
/// they do not change the program's own code.
void sort_by_gain(const AdvisedJob& job, std::vector<Suggestion>& suggestions) {
  std::stable_sort(suggestions.begin(), suggestions.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.gain > b.gain; });
  const auto counts = [](const Suggestion& one) { return one.recommended && one.goal == "time"; };
  const auto best = std::find_if(suggestions.begin(), suggestions.end(), counts);
  if (best == suggestions.end()) return;
  auto surest = best;
  for (auto one = best; one != suggestions.end(); ++one) {
    if (!counts(*one) || job.matters(best->gain - one->gain)) continue;
    if (rank_of(one->confidence.word) < rank_of(surest->confidence.word)) surest = one;
  }
  std::rotate(best, surest, surest + 1);
  if (!applies_to(*best, "launches") && !applies_to(*best, "fusion")) return;
  const auto loading = std::find_if(best, suggestions.end(), [&](const Suggestion& one) {
    return counts(one) && applies_to(one, "loading");
  });
  if (loading != suggestions.end()) std::rotate(best, loading, loading + 1);
}

void put_in_order(const AdvisedJob& job, std::vector<Suggestion>& suggestions) {
  sort_by_gain(job, suggestions);
  for (Suggestion& one : suggestions) one.instead_of.clear();
  note_alternatives(suggestions);
}

}  // namespace

const AdvicePolicy& advice_policy(std::string_view use) {
  const std::string_view name = kind_of(use);
  const auto found = std::find_if(transforms().begin(), transforms().end(),
                                  [&](const TransformEntry& entry) { return entry.name == name; });
  CHECK(found != transforms().end());
  return found->advice;
}

std::string_view common_work(std::string_view one, std::string_view other) {
  for (const std::string_view work : advice_policy(one).applies_to) {
    const auto& others = advice_policy(other).applies_to;
    if (std::find(others.begin(), others.end(), work) != others.end()) return work;
  }
  return {};
}

void sharpen_intervals(AdvisedJob& job, std::vector<Suggestion>& suggestions, std::size_t most) {
  job.baseline.variation = variation_of(job.inference);
  std::vector<Suggestion*> shown;
  for (Suggestion& one : suggestions) {
    if (one.recommended && one.goal == "time" && shown.size() < most) shown.push_back(&one);
  }
  // Each of these works on all cores.
  for (Suggestion* one : shown) {
    const Scenario scenario = scenario_with({one->use});
    Edited edited = edited_by(job, scenario, {.reasons = false, .memory = false});
    const Prediction prediction = predict_edited(job.baseline, job.inference, scenario, edited,
                                                 {.memory = false, .trust = false});
    one->lower = prediction.lower;
    one->upper = prediction.upper;
    one->confidence = confidence_of(job, *one);
  }
  put_in_order(job, suggestions);
}

TriedTransforms try_transforms(const AdvisedJob& job, const AdviceQuestion& question) {
  check_names(question.only, "--only");
  check_names(question.skip, "--skip");
  TriedTransforms tried;
  std::vector<Outcome> tries = to_try(job, question, tried);
  const std::vector<std::span<Outcome>> transforms = by_transform(tries);
  std::vector<std::vector<Suggestion>> suggestions(transforms.size());
  on_all_cores(transforms.size(),
               [&](std::size_t i) { suggestions[i] = answered(job, transforms[i]); });
  for (std::size_t i = 0; i < transforms.size(); ++i) {
    const Outcome& first = transforms[i].front();
    if (suggestions[i].empty())
      tried.not_applicable.push_back({std::string(first.transform->name), first.refused});
    std::move(suggestions[i].begin(), suggestions[i].end(), std::back_inserter(tried.suggestions));
  }
  const Ceilings ceilings = ceilings_of(job, tried.suggestions);
  for (Suggestion& one : tried.suggestions) conclude(job, ceilings, one);
  put_in_order(job, tried.suggestions);
  std::stable_sort(tried.not_applicable.begin(), tried.not_applicable.end(),
                   [](const NotTried& a, const NotTried& b) { return a.transform < b.transform; });
  return tried;
}

}  // namespace foretrace
