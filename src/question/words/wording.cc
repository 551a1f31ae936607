#include "question/words/wording.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>

#include "analysis/place/source_line.h"
#include "base/numbers/scaling.h"
#include "base/shown.h"
#include "question/words/step_facts.h"

namespace foretrace {
namespace {

std::string share_of_window(const Prediction& prediction, Nanoseconds time) {
  const double share = ratio(time, prediction.unexplained.window);
  return fmt::format("{}, {} of the recording{}", to_text(time), to_share(share, 2),
                     share > 1 ? " (summed over streams)" : "");
}

std::string applied_steps(const Prediction& prediction) {
  std::string all;
  for (const AppliedStep& step : prediction.steps) {
    if (!all.empty()) all += ", then ";
    all += step.use;
    if (const std::string part = to_text(step.applies); !part.empty())
      all += fmt::format(" ({})", part);
    else if (step.changed_nothing)
      all += " (changed nothing)";
  }
  return all;
}

std::string interval_text(const Prediction& prediction) {
  return fmt::format("between {} and {}", to_text(prediction.lower), to_text(prediction.upper));
}

std::string peak_text(const MemoryPeak& peak) {
  return fmt::format(
      "{} allocated{}", to_text(peak.peak_allocated),
      peak.peak_reserved ? fmt::format(", {} reserved", to_text(*peak.peak_reserved)) : "");
}

/// Returns the answer for a trace that only records memory.
std::string how_much_memory(const Prediction& prediction) {
  const auto fullest = [](const std::vector<MemoryPeak>& peaks) {
    const MemoryPeak* most = nullptr;
    for (const MemoryPeak& peak : peaks) {
      if (!most || peak.peak_allocated > most->peak_allocated) most = &peak;
    }
    return most ? peak_text(*most) : std::string("no memory");
  };
  const std::string before = fullest(prediction.baseline_memory);
  if (!is_what_if(prediction)) return before + " at the peak";
  return fmt::format("{} -> {} at the peak", before, fullest(prediction.predicted_memory));
}

/// Says what a step contains after the changes, if that is not what it was.
std::string samples_text(const Prediction& prediction) {
  double samples = 1;
  std::int64_t parts = 1;
  for (const AppliedStep& step : prediction.steps) samples *= step.samples, parts *= step.parts;
  if (samples == 1 && parts == 1) return "";
  return fmt::format("; a step has {} samples{}",
                     samples == 1
                         ? "the same"
                         : to_fixed(samples, samples == std::floor(samples) ? 0 : 2) + " times the",
                     parts == 1 ? "" : fmt::format(" in {} parts", parts));
}

std::string how_much(const Prediction& prediction) {
  if (!prediction.has_times) return how_much_memory(prediction);
  const std::string after = to_text(prediction.predicted.step_time);
  if (!is_what_if(prediction)) return after + per_step_text(prediction.has_steps);
  const std::string times = fmt::format("{} -> {}{}", to_text(prediction.baseline.step_time), after,
                                        per_step_text(prediction.has_steps));
  if (prediction.baseline.step_time == prediction.predicted.step_time)
    return times + ": no change" + samples_text(prediction);
  return fmt::format("{} ({}), {} times as fast{}", times,
                     change_text(prediction.baseline.step_time, prediction.predicted.step_time),
                     to_fixed(prediction.speedup, 3), samples_text(prediction));
}

/// Says how much memory would be enough, judged from one replay without a limit.
std::string needed_text(const MemoryPeak& peak) {
  return fmt::format("about {} would be enough", to_text(peak.peak_reserved.value_or(Bytes{})));
}

std::string refused_text(const MemoryPeak& peak) {
  const Refusal& refusal = *peak.out_of_memory;
  // Only memory from before the recording is ever placed beyond the limit.
  if (refusal.reserved > refusal.limit) {
    return fmt::format("no: memory in use before the recording, {}, is more than {}; {}",
                       to_text(refusal.requested), to_text(refusal.limit), needed_text(peak));
  }
  return fmt::format(
      "no: {}{} for {}{}{} is refused at {}, with {} of {} reserved and {} allocated; {}",
      refusal.op.empty() ? "a request" : refusal.op,
      refusal.stack.empty() ? "" : fmt::format(" ({})", shown_frame(refusal.stack)),
      to_text(refusal.requested),
      refusal.phase.empty() ? "" : fmt::format(" in the {} phase", refusal.phase),
      refusal.step < 0 ? "" : fmt::format(" of step {}", refusal.step), to_text(refusal.time),
      to_text(refusal.reserved), to_text(refusal.limit), to_text(refusal.allocated),
      needed_text(peak));
}

/// Warns if clearly more memory was reserved in the recording than in the replay, which starts with
/// an empty cache. It is then unknown how much of the rest the job needs.
std::string recorded_excess_warning(const Prediction& prediction, std::int32_t device) {
  constexpr double kClearly = 1.05;
  for (const MemoryPeak& peak : prediction.baseline_memory) {
    if (peak.device != device || !peak.recorded_reserved || !peak.peak_reserved) continue;
    const double replayed = static_cast<double>(peak.peak_reserved->count);
    if (static_cast<double>(peak.recorded_reserved->count) <= kClearly * replayed) continue;
    return fmt::format(
        "; the replay starts with an empty cache, while {} were reserved when recorded, of which "
        "the recording explains {}",
        to_text(*peak.recorded_reserved), to_text(*peak.peak_reserved));
  }
  return {};
}

std::string fit_sentence(const Prediction& prediction) {
  if (prediction.memory_limit == Bytes{}) return {};
  const MemoryPeak* fullest = nullptr;
  for (const MemoryPeak& peak : prediction.predicted_memory) {
    if (peak.out_of_memory)
      return refused_text(peak) + recorded_excess_warning(prediction, peak.device);
    if (!peak.peak_reserved) continue;
    if (fullest == nullptr || *peak.peak_reserved > *fullest->peak_reserved) fullest = &peak;
  }
  if (fullest == nullptr) return "not known: the trace does not record memory";
  return fmt::format("yes: {} of {} reserved at the peak, {} allocated{}",
                     to_text(*fullest->peak_reserved), to_text(prediction.memory_limit),
                     to_text(fullest->peak_allocated),
                     recorded_excess_warning(prediction, fullest->device));
}

std::string change_of(std::int64_t from, std::int64_t to) {
  if (from == 0) return "-";
  const auto before = static_cast<double>(from);
  return to_percent((static_cast<double>(to) - before) / before);
}

}  // namespace

std::string change_text(Nanoseconds before, Nanoseconds after) {
  return change_of(before.count(), after.count());
}

std::string change_text(Bytes before, Bytes after) { return change_of(before.count, after.count); }

std::array<StepPart, 7> step_parts(const Prediction& prediction) {
  return step_parts(prediction.baseline_breakdown, prediction.predicted_breakdown);
}

std::array<StepPart, 7> step_parts(const Breakdown& before, const Breakdown& after) {
  return {{{"compute", before.compute, after.compute},
           {"communication", before.communication, after.communication},
           {"copy", before.copy, after.copy},
           {"unknown", before.unknown, after.unknown},
           {"input", before.input, after.input},
           {"host", before.host, after.host},
           {"idle", before.idle, after.idle}}};
}

bool is_what_if(const Prediction& prediction) { return !prediction.steps.empty(); }

bool asks_memory(const Prediction& prediction) {
  if (is_what_if(prediction) || prediction.memory_limit != Bytes{}) return true;
  const auto& before = prediction.baseline_memory;
  const auto& after = prediction.predicted_memory;
  return std::equal(before.begin(), before.end(), after.begin(), after.end(),
                    [](const MemoryPeak& a, const MemoryPeak& b) {
                      return a.peak_reserved == b.peak_reserved;
                    }) == false;
}

namespace {

/// Whether kernels take noticeably more or less time than before.
bool changes_kernels(const Prediction& prediction) {
  const Nanoseconds before = prediction.baseline_breakdown.compute;
  const Nanoseconds after = prediction.predicted_breakdown.compute;
  return is_what_if(prediction) && prediction.compute_upper > 0ns &&
         std::abs(ratio(after - before, before)) >= 0.01;
}

/// "1 of 20 ms -> 18 ms, 2 of 50 ms -> 40 ms (above)"; empty if steps are alike.
std::string kinds_sentence(const Prediction& prediction) {
  std::string text;
  bool has_typical = false;
  for (const StepsAlike& kind : prediction.step_kinds) {
    has_typical |= kind.is_typical;
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", kind.steps, to_text(kind.measured));
    if (is_what_if(prediction)) text += " -> " + to_text(kind.predicted);
    if (kind.is_typical) text += " (above)";
  }
  if (text.empty()) return text;
  return text + (has_typical ? ": of different kinds, so the interval is that of one kind"
                             : ": of different kinds, and the interval reaches over all of them");
}

/// Says how long the step is without the recorder's own work; empty if that makes no difference.
std::string unprofiled_sentence(const Prediction& prediction) {
  constexpr double kNoticeable = 0.95;  // Chosen.
  const Nanoseconds without = prediction.baseline_unprofiled;
  if (without <= 0ns || ratio(without, prediction.baseline.step_time) > kNoticeable) return {};
  std::string text = fmt::format("about {}", to_text(without));
  if (is_what_if(prediction)) text += " -> " + to_text(prediction.predicted_unprofiled);
  return text + fmt::format(
                    " a step without the profiler, which takes some {} of the host for each op, "
                    "call and block that it records (usually 0 to 30 % too high; see "
                    "remove_profiler)",
                    to_text(prediction.unexplained.per_record));
}

}  // namespace

VerdictLines verdict(const Prediction& prediction) {
  VerdictLines verdict;
  verdict.trust = trust_warning(prediction.trust);
  verdict.fits = fit_sentence(prediction);
  verdict.what = is_what_if(prediction) ? applied_steps(prediction) : "the job as it was recorded";
  verdict.how_much = how_much(prediction);
  if (!prediction.has_times) {
    verdict.how_sure =
        "a memory snapshot has no step times; its own times are those of its history";
    return verdict;
  }
  verdict.steps = kinds_sentence(prediction);
  verdict.unprofiled = unprofiled_sentence(prediction);
  verdict.how_sure = interval_text(prediction);
  if (changes_kernels(prediction))
    verdict.how_sure +=
        fmt::format(", kernels between {} and {}", to_text(prediction.compute_lower),
                    to_text(prediction.compute_upper));
  if (prediction.trust.reason("edit") != nullptr)
    verdict.how_sure += ", provided that the edit describes the change";
  verdict.how_sure +=
      fmt::format("; {}the unmodified replay is {} off",
                  prediction.replay_error <= kTrustedReplayError ? "" : "NOT TO BE TRUSTED: ",
                  to_share(prediction.replay_error, 3));
  verdict.how_sure += warnings_hint(prediction.notes);
  return verdict;
}

namespace {

/// Says which peak the utilization is a share of; empty if that is unknown.
std::string utilization_sentence(const Prediction& prediction) {
  const StepRates& rates = prediction.baseline_rates;
  if (!flops_utilization(rates, prediction.baseline.step_time)) return {};
  const auto peak = [](const StepRates& of) {
    return fmt::format("{} of {}", to_text(Throughput{of.peak_flops}), of.peak_of);
  };
  std::string text = fmt::format(
      "{} TFLOP a step in matrix products and convolutions whose shapes were recorded ({} % of the "
      "time of such kernels), compared with the peak in half precision, {}",
      to_fixed(rates.flops * 1e-12, 2), to_fixed(100 * rates.known_share, 0), peak(rates));
  if (prediction.predicted_rates.peak_of != rates.peak_of)
    text += ", predicted " + peak(prediction.predicted_rates);
  return text;
}

}  // namespace

std::vector<EvidenceLine> evidence_lines(const Prediction& prediction) {
  const auto count = [&](Provenance provenance) {
    return fmt::format("{} {}", grouped(prediction.dependencies[static_cast<int>(provenance)]),
                       to_string(provenance));
  };
  const std::size_t steps = prediction.measured.steps();
  std::vector<EvidenceLine> all;
  if (!prediction.has_times) {
    all.push_back(
        {"history", counted(prediction.tasks, "event") + " of the allocator, in their order"});
    if (const std::string doubts = trust_sentence(prediction.trust); !doubts.empty())
      all.push_back({"trust", fmt::format("{}: {}", to_string(prediction.trust.grade()), doubts)});
    return all;
  }
  all.push_back(
      {"replay",
       fmt::format("{} measured, {} replayed over {}", to_text(prediction.measured.step_time),
                   to_text(prediction.baseline.step_time),
                   prediction.has_steps ? counted(steps, "step")
                                        : "the whole recording (no steps were found in it)")});
  if (prediction.has_steps) all.push_back({"steps", step_facts(prediction.measured)});
  all.push_back({"pinned", fmt::format("{} of {} held at their recorded start",
                                       grouped(prediction.unexplained.pinned_tasks),
                                       counted(prediction.tasks, "task"))});
  all.push_back({"unexplained", share_of_window(prediction, prediction.unexplained.lag) +
                                    ", kept as delays without a known cause"});
  if (prediction.unexplained.peers != 0ns) {
    all.push_back(
        {"other ranks", share_of_window(prediction, prediction.unexplained.peers) +
                            " of collectives that only the traces of the other ranks explain"});
  }
  all.push_back(
      {"dependencies",
       fmt::format("{}, {}, {}, {}", count(Provenance::measured), count(Provenance::structural),
                   count(Provenance::inferred), count(Provenance::assumed))});
  if (const std::string sentence = utilization_sentence(prediction); !sentence.empty())
    all.push_back({"MFU", sentence});
  if (const std::string doubts = trust_sentence(prediction.trust); !doubts.empty()) {
    all.push_back({"trust", fmt::format("{}: {}", to_string(prediction.trust.grade()), doubts)});
  }
  all.push_back(
      {"interval", "four of five steps are expected inside: " + prediction.interval_source});
  return all;
}

std::vector<std::string> changes(const Prediction& prediction) {
  std::vector<std::string> all;
  for (const AppliedStep& step : prediction.steps)
    all.push_back(fmt::format("{}: {}", step.use, step.summary));
  return all;
}

std::vector<std::string> figures(const Prediction& prediction) {
  std::vector<std::string> all;
  for (const AppliedStep& step : prediction.steps) {
    std::string line;
    for (const Figure& figure : step.figures) {
      std::string name = figure.name;
      std::replace(name.begin(), name.end(), '_', ' ');
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, to_text(figure));
    }
    if (!line.empty())
      all.push_back(fmt::format("{}: {}", step.use.substr(0, step.use.find(':')), line));
  }
  return all;
}

std::vector<std::string> note_texts(const Notes& notes) {
  std::vector<std::string> all;
  for (const Note& note : notes.all()) all.push_back(note_text(note));
  return all;
}

std::string warnings_hint(const Notes& notes) {
  const std::vector<Note>& all = notes.all();
  const auto warnings = std::count_if(
      all.begin(), all.end(), [](const Note& note) { return note.severity == Severity::warning; });
  if (warnings == 0) return {};
  return warnings == 1 ? "; see the warning in the notes"
                       : fmt::format("; see the {} warnings in the notes", grouped(warnings));
}

}  // namespace foretrace
