// Finds steps: by the profiler's markers ("ProfilerStep#7"); else by ranges of engines that serve
// models; else by ranges that the program numbered itself ("step 7"); else by Optimizer.step
// annotations; else by ranges or calls of a root module that contain nearly all launches; else by
// the period of the launches (step_period.cc).

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "infer/host/enclosing.h"
#include "infer/passes.h"
#include "trace/serving/serving_step.h"
#include "trace/step_name.h"

namespace foretrace::infer_detail {
namespace {

/// Share of the launched work that ranges must contain to be steps. Chosen.
constexpr double kMinEnclosed = 0.9;

bool find_markers(const Records& records, Steps& steps) {
  std::map<std::string_view, MarkedStep> found;
  for (const HostRecord& record : records.trace.hosts) {
    const std::string_view name = records.name(record);
    if (!name.starts_with(kProfilerStep)) continue;
    const std::int64_t finish = record.start_ns + record.duration_ns;
    const auto [step, added] =
        found.try_emplace(name, MarkedStep{record.start_ns, finish, std::string(name)});
    if (added) continue;
    step->second.start = std::min(step->second.start, record.start_ns);
    step->second.finish = std::max(step->second.finish, finish);
  }
  for (auto& [name, step] : found) steps.marks.push_back(std::move(step));
  std::sort(steps.marks.begin(), steps.marks.end(),
            [](const MarkedStep& a, const MarkedStep& b) { return a.start < b.start; });
  if (steps.marks.empty()) return false;
  steps.source = StepSource::markers;
  return true;
}

/// Uses ranges that the program numbered itself, which is common under profilers that know no
/// steps. Accepted if the ranges of one word follow each other without overlap.
bool find_numbered_ranges(const Records& records, Steps& steps, Assumptions& assumptions) {
  std::map<std::size_t, std::vector<MarkedStep>> by_word;
  for (const HostRecord& record : records.trace.hosts) {
    if (record.kind != HostKind::annotation || record.duration_ns == 0) continue;
    const auto step = step_name(records.name(record));
    if (!step) continue;
    by_word[step->word].push_back(
        {record.start_ns, record.start_ns + record.duration_ns, std::string(records.name(record))});
  }
  std::vector<MarkedStep> best;
  for (auto& [word, ranges] : by_word) {
    std::sort(ranges.begin(), ranges.end(),
              [](const MarkedStep& a, const MarkedStep& b) { return a.start < b.start; });
    bool sequential = ranges.size() >= kMinRepeats;
    for (std::size_t i = 1; i < ranges.size(); ++i)
      sequential &= ranges[i - 1].finish <= ranges[i].start;
    // The word with fewer, longer ranges wins, because a step may have several micro-batches.
    if (sequential && (best.empty() || ranges.size() < best.size())) best = std::move(ranges);
  }
  if (best.empty()) return false;
  steps.marks = std::move(best);
  steps.source = StepSource::annotation;
  assumptions.push_back(
      fmt::format("Steps are found by ranges such as \"{}\".", steps.marks[0].name));
  return true;
}

/// Uses Optimizer.step: a step ends where it ends.
bool find_optimizer_steps(const Records& records, Steps& steps, Assumptions& assumptions) {
  std::vector<std::pair<std::int64_t, std::int64_t>> updates;
  for (const HostRecord& record : records.trace.hosts) {
    if (records.name(record).substr(0, 15) == "Optimizer.step#") {
      updates.emplace_back(record.start_ns, record.start_ns + record.duration_ns);
    }
  }
  std::sort(updates.begin(), updates.end());
  if (updates.size() < kMinRepeats) return false;
  for (std::size_t i = 0; i + 1 < updates.size(); ++i) {
    steps.marks.push_back(
        {updates[i].second, updates[i + 1].second, "between updates " + std::to_string(i + 1)});
  }
  steps.source = StepSource::optimizer;
  assumptions.push_back("Steps are found by Optimizer.step; the trace has no step markers.");
  return true;
}

/// Returns a name without its numbers, which is equal for ranges of one kind:
/// "execute_context_0_generation_8".
std::string without_numbers(std::string_view name) {
  std::string kind;
  for (const char c : name) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

/// Ranges or module calls of one kind on one thread; or calls that launch graphs of the same size.
struct EnclosingRanges {
  std::map<std::int64_t, std::uint32_t> records;  ///< Host records, by start.
  std::size_t enclosed = 0;                       ///< Number of launched events inside.
};

std::map<std::pair<std::uint16_t, std::string>, EnclosingRanges> ranges_around_launches(
    const Records& records) {
  const Enclosing enclosing(records);
  // By record: number of launched events, and kind.
  std::map<std::uint32_t, std::pair<std::size_t, std::string>> enclosed;
  std::map<std::pair<std::uint16_t, std::string>, EnclosingRanges> kinds;
  for (const std::uint32_t event : records.by_launch) {
    const Call& call = *records.call_of(records.events[event]);
    std::uint32_t record = enclosing.record(call);
    const bool is_range = record != kNone && records.trace.hosts[record].kind != HostKind::op;
    if (!is_range && call.launched.size() < 2) continue;
    if (!is_range) record = call.record;
    auto& [count, kind] = enclosed[record];
    if (++count > 1) continue;
    kind = is_range ? without_numbers(records.name(records.trace.hosts[record]))
                    : "graph of " + std::to_string(call.launched.size());
  }
  for (const auto& [record, counted] : enclosed) {
    const HostRecord& range = records.trace.hosts[record];
    EnclosingRanges& ranges = kinds[{range.thread, counted.second}];
    ranges.records.emplace(range.start_ns, record);
    ranges.enclosed += counted.first;
  }
  return kinds;
}

/// Share of launches made while one of the ranges was open, including launches by other threads
/// (autograd's).
double enclosed_share(const Records& records, const EnclosingRanges& ranges) {
  std::size_t enclosed = 0;
  for (const std::uint32_t event : records.by_launch) {
    const std::int64_t time = records.call_of(records.events[event])->start;
    const auto behind = ranges.records.upper_bound(time);
    if (behind == ranges.records.begin()) continue;
    const HostRecord& range = records.trace.hosts[std::prev(behind)->second];
    enclosed += time < range.start_ns + range.duration_ns ? 1 : 0;
  }
  return static_cast<double>(enclosed) / static_cast<double>(records.by_launch.size());
}

/// Uses outermost ranges that contain nearly all launches. Each is one step, however often
/// something repeats within it.
bool find_enclosing_ranges(const Records& records, Steps& steps, Assumptions& assumptions) {
  const auto kinds = ranges_around_launches(records);
  const auto most = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
    return a.second.enclosed < b.second.enclosed;
  });
  if (most == kinds.end() || enclosed_share(records, most->second) < kMinEnclosed) return false;
  for (const auto& [start, record] : most->second.records) {
    const HostRecord& range = records.trace.hosts[record];
    steps.marks.push_back({start, start + range.duration_ns, std::string(records.name(range))});
  }
  steps.source = StepSource::annotation;
  const std::string& name = steps.marks[0].name;
  assumptions.push_back(
      steps.marks.size() == 1
          ? fmt::format("All work lies within one \"{}\", which counts as one step.", name)
          : fmt::format("Steps are found by ranges such as \"{}\".", name));
  return true;
}

/// Uses the ranges that engines which serve models name their steps by, of all kinds, if they
/// contain most launches. Ranges inside of others name the same step.
bool find_serving_steps(const Records& records, Steps& steps, Assumptions& assumptions) {
  EnclosingRanges ranges;
  for (std::uint32_t i = 0; i < records.trace.hosts.size(); ++i) {
    const HostRecord& record = records.trace.hosts[i];
    if (record.kind == HostKind::annotation && record.duration_ns > 0 &&
        serving_step(records.name(record)))
      ranges.records.emplace(record.start_ns, i);
  }
  constexpr double kMax = 0.5;  // Sampling may be launched between steps.
  if (ranges.records.empty() || records.by_launch.empty() || enclosed_share(records, ranges) < kMax)
    return false;
  for (const auto& [start, number] : ranges.records) {
    const HostRecord& range = records.trace.hosts[number];
    if (!steps.marks.empty() && start < steps.marks.back().finish) continue;
    steps.marks.push_back({start, start + range.duration_ns, std::string(records.name(range))});
  }
  steps.source = StepSource::annotation;
  assumptions.push_back(fmt::format(
      "Steps are those of an engine that serves a model, such as \"{}\".", steps.marks[0].name));
  return true;
}

/// Drops steps without device work, if at least half of the steps have some. A profiler that is
/// stopped at the end of a loop leaves a last marker with nothing in it. Steps with launches stay,
/// because completeness.cc judges what became of their work.
void drop_steps_without_work(const Records& records, const Completeness& found, Steps& steps,
                             Notes& notes) {
  std::vector<char> works(steps.marks.size(), 0);
  for (const std::uint32_t event : records.by_launch) {
    const std::int32_t step = steps.at(records.call_of(records.events[event])->start);
    if (step >= 0) works[static_cast<std::size_t>(step)] = 1;
  }
  for (const CountedLaunch& launch : found.launches) {
    const std::int32_t step = steps.at(launch.start);
    if (step >= 0) works[static_cast<std::size_t>(step)] = 1;
  }
  const auto working = static_cast<std::size_t>(std::count(works.begin(), works.end(), 1));
  if (working == works.size() || 2 * working < works.size()) return;
  std::vector<MarkedStep> kept;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i] != 0) {
      kept.push_back(std::move(steps.marks[i]));
    } else {
      notes.add(Severity::info, "steps without device work do not count", steps.marks[i].name);
    }
  }
  steps.marks = std::move(kept);
}

}  // namespace

Steps find_steps(const Records& records, const Completeness& found, Notes& notes,
                 Assumptions& assumptions) {
  Steps steps;
  if (find_markers(records, steps) || find_serving_steps(records, steps, assumptions) ||
      find_numbered_ranges(records, steps, assumptions) ||
      find_optimizer_steps(records, steps, assumptions) ||
      find_enclosing_ranges(records, steps, assumptions)) {
    drop_steps_without_work(records, found, steps, notes);
    if (steps.marks.size() == 1) find_repetition_in_only_step(records, steps);
    return steps;
  }
  return find_period(records, assumptions);
}

void settle_step_time(StepSource source, Inference& result) {
  result.graph.step_rule().source = source;
  set_step_rule(result.graph, result.recorded);
  const StepTimes times = step_times(result.graph, result.recorded);
  if (times.each.empty()) return;
  if (times.steps() < kFewSteps) {
    result.notes.add(Severity::warning, "fewer than three steps count towards the step time",
                     fmt::format("{} {}", times.steps(), times.steps() == 1 ? "step" : "steps"));
  }
  if (times.spread > kWideSpread) {
    result.notes.add(
        Severity::warning, "steps differ by more than 30 %; no single step is typical",
        fmt::format("from {} to {}, median {}, mean {}", to_text(times.fastest),
                    to_text(times.slowest), to_text(times.step_time), to_text(times.mean)));
  }
}

std::int32_t Steps::at(std::int64_t time) const {
  const auto behind =
      std::upper_bound(marks.begin(), marks.end(), time,
                       [](std::int64_t t, const MarkedStep& step) { return t < step.start; });
  if (behind == marks.begin()) return -1;
  const bool over = behind == marks.end() && time >= std::prev(behind)->finish;
  return over ? -1 : static_cast<std::int32_t>(behind - marks.begin() - 1);
}

}  // namespace foretrace::infer_detail
