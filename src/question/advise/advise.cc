// Advice: a baseline, its bound, the transforms that would help alone and together, and how fast
// its parts would have to be.

#include "foretrace/question/advise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/doubt/ledger.h"
#include "analysis/place/work_group.h"
#include "base/numbers/scaling.h"
#include "base/parse_number.h"
#include "base/threads.h"
#include "foretrace/answer/advice.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/machine.h"
#include "foretrace/simulate.h"
#include "job/job.h"
#include "job/step_cost.h"
#include "question/advise/advised_job.h"
#include "question/advise/bounds.h"
#include "question/advise/candidates.h"
#include "question/advise/joint_advice.h"
#include "question/advise/suggestions.h"
#include "question/common/straggler.h"
#include "question/sweep/vary.h"
#include "trace/wait_call.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

constexpr std::array<std::string_view, 2> kTargets = {"step_time", "throughput"};

double rate_of(std::string_view text) {
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0)
    throw Error(fmt::format("must be a number of samples per second above 0, got \"{}\"", text));
  return *value;
}

/// The text after "<=" or ">=" (or without the "="), whichever is required.
std::string_view threshold_of(std::string_view name, std::string_view demand, char sign) {
  if (demand.empty() || demand.front() != sign) {
    throw Error(fmt::format("must be at {} something: \"{} {}\", got \"{}\"",
                            sign == '<' ? "most" : "least", name,
                            sign == '<' ? "<= 100ms" : ">= 4000", demand));
  }
  demand.remove_prefix(1);
  if (demand.starts_with('=')) demand.remove_prefix(1);
  return without_blanks(demand);
}

/// Reads "step_time <= 100ms" (or <), or "throughput >= 4000" (or >) in samples per second, where a
/// step has `samples` samples. Throws Error with the allowed forms.
AdviceTarget read_target(std::string_view text, double samples) {
  const std::string_view trimmed = without_blanks(text);
  const std::string_view name = trimmed.substr(0, trimmed.find_first_of(" <>="));
  const std::string_view demand = without_blanks(trimmed.substr(name.size()));
  AdviceTarget target{.text = std::string(trimmed)};
  if (name == "step_time") {
    target.step_time = within(name, [&] { return parse_time(threshold_of(name, demand, '<')); });
    if (!demand.starts_with("<=")) target.step_time -= 1ns;
  } else if (name == "throughput") {
    const double rate = within(name, [&] { return rate_of(threshold_of(name, demand, '>')); });
    if (!(samples > 0) || !std::isfinite(samples))
      throw Error("throughput: needs --samples-per-step, the number of samples in a recorded step");
    // A target beyond the range of the clock is always reached.
    target.step_time = scaled(1s, std::min(samples / rate, 1e9));
  } else {
    throw Error(
        fmt::format("must be \"step_time <= TIME\" or \"throughput >= NUMBER\", got \"{}\"{}",
                    trimmed, did_you_mean(name, kTargets)));
  }
  if (target.step_time <= 0ns)
    throw Error(fmt::format("{}: must allow steps longer than 0ns", name));
  return target;
}

// How far adding GPUs pays off.

constexpr std::int64_t kMaxAdvisedGpus = 1024;

std::string step_of(std::int64_t gpus, const std::string& network) {
  return fmt::format("data_parallel:gpus={},machine=\"{}\"", gpus, network);
}

/// Predicts the job with data parallelism on 2, 4, 8 ... GPUs of `network`, up to 1,024 or as many
/// as it has. Works on all cores.
MoreGpus more_gpus(const AdvisedJob& job, const std::string& network) {
  MoreGpus found{.network = network, .points = {}, .refused = {}};
  std::vector<std::int64_t> counts;
  for (std::int64_t gpus = 2; gpus <= kMaxAdvisedGpus; gpus *= 2) counts.push_back(gpus);
  std::vector<std::optional<Nanoseconds>> times(counts.size());
  std::vector<std::string> refused(counts.size());
  on_all_cores(counts.size(), [&](std::size_t i) {
    const std::string step = step_of(counts[i], network);
    try {
      times[i] = step_time_with(job, {step});
    } catch (const Error& error) {
      refused[i] = without_place(error.what(), step);
    }
  });
  MoreGpus::Point before;
  for (std::size_t i = 0; i < counts.size() && times[i]; ++i) {
    MoreGpus::Point point{.gpus = counts[i]};
    point.times_as_fast = ratio(job.now(), *times[i]) * static_cast<double>(counts[i]);
    point.each_added = (point.times_as_fast - before.times_as_fast) /
                       static_cast<double>(point.gpus - before.gpus);
    found.points.push_back(before = point);
  }
  if (found.points.empty()) found.refused = refused.front();
  if (found.refused.starts_with("gradient_bytes"))
    found.refused += ", or ask foretrace scale with --scheme data_parallel:gradient_bytes=SIZE";
  return found;
}

/// A question about one setting of a transform: its values are tried by replaying.
struct SettingQuestion {
  Vary vary;
  Scenario scenario;
};

bool is_setting(std::string_view name) { return name.find('=') != name.npos; }

/// Explains how to give values if `name` is a transform's setting.
void refuse_bare_setting(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('.'));
  const bool known = std::any_of(transforms().begin(), transforms().end(),
                                 [&](const TransformEntry& one) { return one.name == first; });
  if (known && first.size() < name.size())
    throw Error(fmt::format("name the values to try: {}=1..32", name));
}

SettingQuestion setting_question(const AdviceQuestion& asked, const AdviceTarget& target) {
  const std::size_t equals = asked.vary.find('=');
  SettingQuestion question;
  question.vary = {.setting = asked.vary.substr(0, equals),
                   .values = asked.vary.substr(equals + 1),
                   .until = "step_time <= " + to_exact_text(target.step_time)};
  question.scenario =
      scenario_with({question.vary.setting.substr(0, question.vary.setting.find('.'))});
  return question;
}

void check_question(const AdviceQuestion& question) {
  if (!question.vary.empty() && question.until.empty())
    throw Error("--vary: needs --until, which gives the target");
  if (!question.candidates.empty()) {
    if (!question.until.empty())
      throw Error("--candidates: says what each gains, and takes no --until");
    within("--candidates", [&] { read_candidates(question.candidates); });
  }
  if (!question.until.empty())
    within("--until", [&] { return read_target(question.until, question.samples); });
  if (!question.network.empty())
    within("--network", [&] { return find_cluster(question.network, 1); });
  if (!question.vary.empty() && !is_setting(question.vary))
    within("--vary", [&] { refuse_bare_setting(question.vary); });
  if (is_setting(question.vary)) {
    within("--vary",
           [&] { scenario_with({question.vary.substr(0, question.vary.find_first_of(".="))}); });
  }
}

/// The job as it would run on another device; its replay is then the baseline.
Inference moved(const Inference& inference, const std::string& machine, Notes& notes) {
  Inference other = clone(inference);
  Scenario scenario;
  scenario.machine = machine;
  const ApplyResult applied = apply(scenario, other.graph);
  notes.merge(applied.notes);
  for (const std::string& assumption : applied.assumptions) other.assumptions.push_back(assumption);
  other.recorded = simulate(other.graph, {.reasons = false, .memory = true});
  const std::string name = find_device(machine).name;
  for (std::string& device : other.graph.device_names()) {
    if (!device.empty()) device = name;
  }
  return other;
}

void describe(const AdvisedJob& job, Advice& advice) {
  const Prediction& now = job.baseline.prediction;
  advice.has_steps = now.has_steps;
  advice.measured = now.measured.step_time;
  advice.step_time = job.now();
  advice.replay_error = now.replay_error;
  advice.unexplained = job.unexplained();
  advice.noise = job.noise;
  advice.spread = job.spread;
  advice.breakdown = now.baseline_breakdown;
  advice.rates = now.baseline_rates;
  advice.path = job.path;
  advice.bound.part = job.path.largest();
  advice.trust = job.trust;
  advice.allocated = greatest_allocated(now.baseline_memory);
  advice.reserved = greatest_reserved(now.baseline_memory);
  for (const std::string& name : job.inference.graph.device_names()) {
    const DeviceModel* device = name.empty() ? nullptr : device_recorded_as(name);
    if (device != nullptr) advice.memory = device->memory;
  }
  advice.notes.merge(now.notes);
}

/// "41 driver calls a step such as cudaMalloc"
std::string allocation_calls(const Graph& graph) {
  const MeasuredSteps steps = measured_steps(graph);
  std::int64_t calls = 0;
  std::string_view name;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    if (runs_on_device(graph.task(id).kind) || !steps.has(graph.task(id))) continue;
    if (!is_driver_allocation(graph.name(id))) continue;
    if (name.empty()) name = graph.name(id);
    ++calls;
  }
  const std::int64_t a_step = (calls + steps.count - 1) / steps.count;
  return fmt::format("{} driver {} a step such as {}", a_step, a_step == 1 ? "call" : "calls",
                     name);
}

/// "Memcpy HtoD (Pageable -> Device), 805 MB a step at 11.9 GB/s: ...", the copies that take most
/// time in a step; empty if there is no copy with a size.
std::string largest_copies(const Graph& graph) {
  const MeasuredSteps steps = measured_steps(graph);
  struct Copies {
    Nanoseconds time{0};
    Bytes bytes{};
  };
  std::map<NameId, Copies> of_names;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (!is_copy(task.kind) || !steps.has(task)) continue;
    Copies& copies = of_names[task.name];
    copies.time += task.duration;
    copies.bytes += task.bytes;
  }
  const auto most =
      std::max_element(of_names.begin(), of_names.end(),
                       [](const auto& a, const auto& b) { return a.second.time < b.second.time; });
  if (most == of_names.end() || most->second.bytes <= Bytes{}) return {};
  const Copies& copies = most->second;
  return fmt::format("{}: {} a step at {}; copy less, in a narrower type, or while kernels run",
                     graph.names()[most->first], to_text(Bytes{copies.bytes.count / steps.count}),
                     to_text(Bandwidth{1e9 * static_cast<double>(copies.bytes.count) /
                                       static_cast<double>(copies.time.count())}));
}

/// Whether the first recommendation for time improves loading.
bool advises_loading(const Advice& advice) {
  const auto best =
      std::find_if(advice.suggestions.begin(), advice.suggestions.end(),
                   [](const Suggestion& one) { return one.recommended && one.goal == "time"; });
  return best != advice.suggestions.end() && best->use.starts_with("loader");
}

/// Host work other than launching is reported if removing it saves more than this share of a step.
constexpr double kMuchOfAStep = 0.1;

/// Adds causes to fix before any compiler can help: a program that asks the driver for memory in
/// each step, waits for data, or does long pieces of host work.
void add_causes(const AdvisedJob& job, Advice& advice) {
  const auto without = [&](Nanoseconds gain) {
    return to_percent(-static_cast<double>(gain.count()) /
                      static_cast<double>(advice.step_time.count()));
  };
  std::vector<std::pair<Nanoseconds, std::string>> causes;
  for (const AdviceCeiling& ceiling : advice.ladder) {
    const Nanoseconds gain = advice.step_time - ceiling.step_time;
    if (!ceiling.is_present || !job.matters(gain)) continue;
    if (ceiling.name == "allocations")
      causes.emplace_back(
          gain, fmt::format("{} to allocate or free memory ({} without): keep memory in the "
                            "allocator's cache and find what empties it",
                            allocation_calls(job.inference.graph), without(gain)));
    if (ceiling.name == "input" && !advises_loading(advice))
      causes.emplace_back(
          gain,
          fmt::format("the step waits for data ({} without): see foretrace input", without(gain)));
  }
  if (advice.bound.part == PathPart::copies) {
    if (std::string text = largest_copies(job.inference.graph); !text.empty())
      causes.emplace_back(advice.step_time - advice.bound.without, std::move(text));
  }
  if (const WorkGroup group = long_host_work(job.whole); group.has_work) {
    const Nanoseconds gain = advice.step_time - step_with(job.whole, group, 0);
    if (gain > scaled(advice.step_time, kMuchOfAStep))
      causes.emplace_back(
          gain, fmt::format("\"{}\", {} of host work a step in long pieces ({} without): this is "
                            "not launching, so look at what the code does",
                            group.title, to_text(work_of(job.whole, group)), without(gain)));
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [gain, text] : causes) advice.causes.push_back(std::move(text));
}

void answer_setting(const AdviceQuestion& question, const JobRanks& job, Advice& advice) {
  const SettingQuestion asked = setting_question(question, *advice.target);
  advice.curve = vary(job, asked.scenario, asked.vary, {});
}

std::vector<WorkGroup> asked_groups(const Graph& graph, const std::string& name) {
  if (name.empty()) return named_groups(graph);
  std::vector<WorkGroup> one;
  one.push_back(within("--vary", [&] { return group_named(graph, name); }));
  if (one.front().has_work) return one;
  throw Error(fmt::format("--vary: the trace has no {} to make faster", one.front().title));
}

Advice advise_on(const Inference& inference, const RankOfJob& place, const AdviceQuestion& question,
                 const std::vector<KnownOutcome>& user_outcomes, Advice advice) {
  AdvisedJob job = advised_job(inference, user_outcomes, place);
  describe(job, advice);
  advice.top = question.top;
  std::optional<Nanoseconds> target;
  if (!question.until.empty()) {
    advice.target =
        within("--until", [&] { return read_target(question.until, question.samples); });
    advice.target->holds_now = job.now() <= advice.target->step_time;
    target = advice.target->step_time;
  }
  if (is_setting(question.vary)) return advice;
  if (!question.candidates.empty()) {
    advice.candidates = within("--candidates", [&] {
      return judge_candidates(job.whole, read_candidates(question.candidates));
    });
    return advice;
  }
  const std::vector<WorkGroup> groups = asked_groups(job.whole.graph(), question.vary);
  advice.speed_ups = speed_ups_of(job.whole, groups, job.now(), target);
  if (!question.vary.empty()) return advice;
  advice.ladder = ladder_of(job.whole, job.now());
  advice.bound = bound_of(advice.ladder, advice.speed_ups, job.path.largest(), job.now());
  TriedTransforms tried = try_transforms(job, question);
  sharpen_intervals(job, tried.suggestions, question.top);
  advice.suggestions = std::move(tried.suggestions);
  advice.not_applicable = std::move(tried.not_applicable);
  advice.no_advice = std::move(tried.no_advice);
  advice.joint = joint_advice(job, advice.suggestions);
  add_causes(job, advice);
  if (!question.network.empty()) advice.more_gpus = more_gpus(job, question.network);
  return advice;
}

/// Advises for the machine of the question, if it names one; the rank is then treated as alone.
Advice advise_machine(const Inference& recorded, RankOfJob place, const AdviceQuestion& question,
                      const std::string& ledger_path) {
  const std::vector<KnownOutcome> user_outcomes = read_user_outcomes(ledger_path);
  Advice advice;
  std::optional<Inference> elsewhere;
  if (!question.machine.empty()) {
    elsewhere = within("--machine", [&] {
      find_device(question.machine);  // Throws the most helpful message for a wrong name.
      return moved(recorded, question.machine, advice.notes);
    });
    advice.machine = question.machine;
    place = {};
  }
  const Inference& inference = elsewhere ? *elsewhere : recorded;
  Advice answer = advise_on(inference, place, question, user_outcomes, std::move(advice));
  if (!is_setting(question.vary)) return answer;
  if (place.job != nullptr) {
    answer_setting(question, *place.job, answer);
    return answer;
  }
  std::vector<Inference> ranks;
  ranks.push_back(clone(inference));
  answer_setting(question, job_of(std::move(ranks)), answer);
  return answer;
}

/// The ranks without memory snapshots, which have no times. Throws TraceError if there are no
/// others.
JobRanks without_snapshots(const JobRanks& job) {
  JobRanks timed;
  timed.path = job.path;
  for (const Rank& rank : job.ranks) {
    if (rank.is_snapshot) continue;
    Rank& kept = timed.ranks.emplace_back();
    kept.number = rank.number;
    kept.inference = clone(rank.inference);
    kept.import_notes = rank.import_notes;
  }
  if (!timed.ranks.empty()) return timed;
  throw TraceError(job.path +
                   ": has memory events and no times, so it has no step time; record a trace with "
                   "the profiler, or see `foretrace memory`");
}

}  // namespace

Advice advise(const Job& opened, const AdviceQuestion& question, const std::string& ledger_path) {
  check_question(question);
  std::optional<JobRanks> timed;
  if (opened.ranks().has_snapshots()) timed = without_snapshots(opened.ranks());
  const JobRanks& job = timed ? *timed : opened.ranks();
  Notes notes;
  const RankChoice choice = rank_to_advise(job, notes);
  const Rank& rank = job.ranks[choice.rank];
  Notes all = rank.import_notes;
  all.merge(notes);
  const RankOfJob place = job.is_joined() ? RankOfJob{&job, choice.rank} : RankOfJob{};
  Advice advice = advise_machine(rank.inference, place, question, ledger_path);
  advice.rank_choice = choice.reason;
  if (!choice.straggler.empty()) advice.causes.insert(advice.causes.begin(), choice.straggler);
  all.merge(advice.notes);
  advice.notes = std::move(all);
  advice.inputs = opened.inputs();
  return advice;
}

}  // namespace foretrace
