// Training steps: from the profiler's markers ("ProfilerStep#7"), else from ranges that the program
// numbered itself ("step 7"), else from Optimizer.step annotations, else from ranges or calls of a
// root module that contain nearly all launches, else from the period of the launches
// (step_period.cc).

#include <algorithm>
#include <map>

#include "infer/draft.h"
#include "infer/host/enclosing.h"
#include "trace/step_name.h"

namespace foretrace::infer_detail {
namespace {

/// Share of the launched work that ranges must hold to be steps. Chosen.
constexpr double kLeastHeld = 0.9;

bool find_markers(Draft& draft) {
  std::map<std::string_view, MarkedStep> found;
  for (const HostRecord& record : draft.trace.hosts) {
    const std::string_view name = draft.name(record);
    if (!name.starts_with(kProfilerStep)) continue;
    const std::int64_t finish = record.start_ns + record.duration_ns;
    const auto [step, added] =
        found.try_emplace(name, MarkedStep{record.start_ns, finish, std::string(name)});
    if (added) continue;
    step->second.start = std::min(step->second.start, record.start_ns);
    step->second.finish = std::max(step->second.finish, finish);
  }
  for (auto& [name, step] : found) draft.steps.push_back(std::move(step));
  std::sort(draft.steps.begin(), draft.steps.end(),
            [](const MarkedStep& a, const MarkedStep& b) { return a.start < b.start; });
  if (draft.steps.empty()) return false;
  draft.step_source = StepSource::markers;
  return true;
}

/// Ranges that the program numbered itself, as is the custom under profilers that know no steps.
/// Taken where one word's ranges follow each other without overlapping.
bool find_numbered_ranges(Draft& draft) {
  std::map<std::size_t, std::vector<MarkedStep>> by_word;
  for (const HostRecord& record : draft.trace.hosts) {
    if (record.kind != HostKind::annotation || record.duration_ns == 0) continue;
    const auto step = step_name(draft.name(record));
    if (!step) continue;
    by_word[step->word].push_back(
        {record.start_ns, record.start_ns + record.duration_ns, std::string(draft.name(record))});
  }
  std::vector<MarkedStep> best;
  for (auto& [word, steps] : by_word) {
    std::sort(steps.begin(), steps.end(),
              [](const MarkedStep& a, const MarkedStep& b) { return a.start < b.start; });
    bool in_line = steps.size() >= kLeastRepeats;
    for (std::size_t i = 1; i < steps.size(); ++i) in_line &= steps[i - 1].finish <= steps[i].start;
    // The word with fewer, longer ranges wins: a step has several micro-batches.
    if (in_line && (best.empty() || steps.size() < best.size())) best = std::move(steps);
  }
  if (best.empty()) return false;
  draft.steps = std::move(best);
  draft.step_source = StepSource::annotation;
  draft.assumptions.push_back("Steps are found by ranges such as \"" + draft.steps[0].name + "\".");
  return true;
}

/// A step ends where Optimizer.step ends.
bool find_optimizer_steps(Draft& draft) {
  std::vector<std::pair<std::int64_t, std::int64_t>> updates;
  for (const HostRecord& record : draft.trace.hosts) {
    if (draft.name(record).substr(0, 15) == "Optimizer.step#") {
      updates.emplace_back(record.start_ns, record.start_ns + record.duration_ns);
    }
  }
  std::sort(updates.begin(), updates.end());
  if (updates.size() < kLeastRepeats) return false;
  for (std::size_t i = 0; i + 1 < updates.size(); ++i) {
    draft.steps.push_back(
        {updates[i].second, updates[i + 1].second, "between updates " + std::to_string(i + 1)});
  }
  draft.step_source = StepSource::optimizer;
  draft.assumptions.push_back("Steps are found by Optimizer.step; the trace has no step markers.");
  return true;
}

/// Ranges of one kind have one name, but for numbers in it: "execute_context_0_generation_8".
std::string without_numbers(std::string_view name) {
  std::string kind;
  for (const char c : name) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

/// Ranges or calls of modules of one kind, on one thread; or calls that launch graphs as large.
struct Holders {
  std::map<std::int64_t, std::uint32_t> records;  ///< By start.
  std::size_t held = 0;                           ///< Launched events.
};

std::map<std::pair<std::uint16_t, std::string>, Holders> holders_of_work(const Draft& draft) {
  const Enclosing enclosing(draft);
  std::map<std::uint32_t, std::pair<std::size_t, std::string>> held;  // By record.
  std::map<std::pair<std::uint16_t, std::string>, Holders> kinds;
  for (const std::uint32_t event : draft.by_launch) {
    const Call& call = *draft.call_of(draft.events[event]);
    std::uint32_t record = enclosing.record(call);
    const bool is_range = record != kNone && draft.trace.hosts[record].kind != HostKind::op;
    if (!is_range && call.launched.size() < 2) continue;
    if (!is_range) record = call.record;
    auto& [count, kind] = held[record];
    if (++count > 1) continue;
    kind = is_range ? without_numbers(draft.name(draft.trace.hosts[record]))
                    : "graph of " + std::to_string(call.launched.size());
  }
  for (const auto& [record, what] : held) {
    const HostRecord& range = draft.trace.hosts[record];
    Holders& holders = kinds[{range.thread, what.second}];
    holders.records.emplace(range.start_ns, record);
    holders.held += what.first;
  }
  return kinds;
}

/// The share of launches made while one of them lasted, also by other threads (that of autograd).
double share_held(const Draft& draft, const Holders& holders) {
  std::size_t held = 0;
  for (const std::uint32_t event : draft.by_launch) {
    const std::int64_t time = draft.call_of(draft.events[event])->start;
    const auto behind = holders.records.upper_bound(time);
    if (behind == holders.records.begin()) continue;
    const HostRecord& range = draft.trace.hosts[std::prev(behind)->second];
    held += time < range.start_ns + range.duration_ns ? 1 : 0;
  }
  return static_cast<double>(held) / static_cast<double>(draft.by_launch.size());
}

/// Ranges, none of them within another record, that contain nearly all launches. Each is one step,
/// however often something repeats within it.
bool find_holding_ranges(Draft& draft) {
  const auto kinds = holders_of_work(draft);
  const auto most = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
    return a.second.held < b.second.held;
  });
  if (most == kinds.end() || share_held(draft, most->second) < kLeastHeld) return false;
  for (const auto& [start, record] : most->second.records) {
    const HostRecord& range = draft.trace.hosts[record];
    draft.steps.push_back({start, start + range.duration_ns, std::string(draft.name(range))});
  }
  draft.step_source = StepSource::annotation;
  draft.assumptions.push_back(
      draft.steps.size() == 1
          ? "All work lies within one \"" + draft.steps[0].name + "\", which counts as one step."
          : "Steps are found by ranges such as \"" + draft.steps[0].name + "\".");
  return true;
}

/// A profiler that is stopped at the end of a loop leaves a last marker with nothing in it. If most
/// steps have device work, those without are not steps.
void drop_steps_without_work(Draft& draft) {
  std::vector<char> works(draft.steps.size(), 0);
  for (const std::uint32_t event : draft.by_launch) {
    const std::int32_t step = step_at(draft, draft.call_of(draft.events[event])->start);
    if (step >= 0) works[static_cast<std::size_t>(step)] = 1;
  }
  const auto working = static_cast<std::size_t>(std::count(works.begin(), works.end(), 1));
  if (working == works.size() || 2 * working < works.size()) return;
  std::vector<MarkedStep> kept;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i] != 0) {
      kept.push_back(std::move(draft.steps[i]));
    } else {
      draft.notes.add(Severity::info, "steps without device work do not count",
                      draft.steps[i].name);
    }
  }
  draft.steps = std::move(kept);
}

}  // namespace

void find_steps(Draft& draft) {
  if (find_markers(draft) || find_numbered_ranges(draft) || find_optimizer_steps(draft) ||
      find_holding_ranges(draft))
    return drop_steps_without_work(draft);
  find_period(draft);
}

void settle_step_time(Draft& draft) {
  draft.graph.step_rule().source = draft.step_source;
  settle_steps(draft.graph, draft.recorded);
  const StepTimes times = step_times(draft.graph, draft.recorded);
  if (times.each.empty()) return;
  if (times.steps() < kFewSteps) {
    draft.notes.add(Severity::warning, "fewer than three steps count towards the step time",
                    std::to_string(times.steps()) + (times.steps() == 1 ? " step" : " steps"));
  }
  if (times.spread > kWideSpread) {
    draft.notes.add(Severity::warning, "steps differ by more than 30 %; no single step is typical",
                    "from " + to_text(times.fastest) + " to " + to_text(times.slowest) +
                        ", median " + to_text(times.step_time) + ", mean " + to_text(times.mean));
  }
}

std::int32_t step_at(const Draft& draft, std::int64_t time) {
  const auto behind =
      std::upper_bound(draft.steps.begin(), draft.steps.end(), time,
                       [](std::int64_t t, const MarkedStep& step) { return t < step.start; });
  if (behind == draft.steps.begin()) return -1;
  const bool over = behind == draft.steps.end() && time >= std::prev(behind)->finish;
  return over ? -1 : static_cast<std::int32_t>(behind - draft.steps.begin() - 1);
}

}  // namespace foretrace::infer_detail
