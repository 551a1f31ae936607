#include "question/diff/sides.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

namespace foretrace {
namespace {

constexpr std::size_t kMaxPeakChanges = 12;

double distance_from(Nanoseconds value, Nanoseconds typical) {
  if (typical <= 0ns) return 0;
  return std::abs(static_cast<double>((value - typical).count())) /
         static_cast<double>(typical.count());
}

/// Relative difference of two numbers of tasks; steps that alternate differ in it.
double relative_difference(std::size_t before, std::size_t after) {
  const auto [less, more] = std::minmax(before, after);
  return more == 0 ? 0 : static_cast<double>(more - less) / static_cast<double>(more);
}

void count_task(const Task& task, StepContent& content) {
  if (task.kind == TaskKind::collective) {
    ++content.collectives;
    content.communicated += task.bytes;
  } else if (moves_bytes(task.kind)) {
    ++content.copies;
    content.copied += task.bytes;
  } else if (task.kind == TaskKind::fill) {
    ++content.fills;
  } else if (runs_on_device(task.kind)) {
    ++content.kernels;
  } else if (task.kind == TaskKind::launch) {
    ++content.launches;
  } else if (task.kind == TaskKind::sync) {
    ++content.syncs;
  } else if (runs_on_host(task.kind)) {
    ++content.host_tasks;
  }
}

StepContent content_of(const Graph& graph, const SideWindow& window) {
  StepContent content;
  const auto counts = [&](TaskId task) {
    if (task == kNoTask || graph.removed(task)) return false;
    const std::int32_t behind = graph.task(task).step - window.step;
    return window.step < 0 || (behind >= 0 && behind < static_cast<std::int32_t>(window.count));
  };
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (counts(TaskId{i})) count_task(graph.task(TaskId{i}), content);
  }
  for (const Allocation& allocation : graph.allocations()) {
    if (allocation.device < 0 || allocation.bytes.count <= 0 || !counts(allocation.made_by))
      continue;
    ++content.allocations;
    content.allocated += allocation.bytes;
  }
  return content;
}

/// The device whose memory is fullest, and its peak.
struct FullestDevice {
  std::int32_t device = -1;
  Bytes peak{};
};

std::optional<FullestDevice> fullest_device(const DiffSide& side) {
  std::optional<FullestDevice> found;
  for (const MemoryCurve& curve : memory_curves(side.graph, side.timeline)) {
    if (curve.device < 0 || curve.points.empty()) continue;
    if (!found || curve.peak > found->peak) found = {curve.device, curve.peak};
  }
  return found;
}

using BytesByOp = std::map<std::string, Bytes>;

/// Returns how many of the events lead to the peak of the device.
std::size_t events_until_peak(const std::vector<MemoryEvent>& events,
                              const std::vector<Allocation>& all, std::int32_t device) {
  Bytes level{}, most{};
  std::size_t peak = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Allocation& allocation = all[events[i].allocation];
    if (allocation.device != device) continue;
    events[i].frees ? level -= allocation.bytes : level += allocation.bytes;
    if (level > most) most = level, peak = i + 1;
  }
  return peak;
}

BytesByOp in_use_at_peak(const DiffSide& side, std::int32_t device) {
  const Graph& graph = side.graph;
  const std::vector<Allocation>& all = graph.allocations();
  std::vector<char> is_live(all.size(), 0);
  Bytes unknown = initial_memory(graph, device);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].device != device || all[i].made_by != kNoTask) continue;
    is_live[i] = 1;
    unknown -= all[i].bytes;
  }
  const std::vector<MemoryEvent> events = memory_events(graph, side.timeline);
  const std::size_t peak = events_until_peak(events, all, device);
  for (std::size_t i = 0; i < peak; ++i) {
    if (all[events[i].allocation].device == device)
      is_live[events[i].allocation] = events[i].frees ? 0 : 1;
  }
  BytesByOp by_op;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_live[i] == 0) continue;
    const std::string op(graph.names()[all[i].op]);
    by_op[op.empty() ? std::string(to_string(all[i].use)) : op] += all[i].bytes;
  }
  if (unknown.count > 0) by_op["(in use before the recording)"] += unknown;
  return by_op;
}

/// The stretches of time of the host ranges that mark the steps of a window.
using Stretches = std::vector<std::pair<std::int64_t, std::int64_t>>;

Stretches stretches_of(const DiffSide& side, const SideWindow& window) {
  std::set<std::string_view> names;
  const auto steps = static_cast<std::int32_t>(side.graph.steps().size());
  for (std::int32_t i = 0; window.step >= 0 && i < static_cast<std::int32_t>(window.count); ++i) {
    if (window.step + i < steps)
      names.insert(side.graph.steps()[static_cast<std::size_t>(window.step + i)].name);
  }
  Stretches stretches;
  for (const HostRecord& record : side.trace->hosts) {
    if (record.kind == HostKind::annotation && names.contains(side.trace->names[record.name]))
      stretches.emplace_back(record.start_ns, record.start_ns + record.duration_ns);
  }
  return stretches;
}

/// Calls `visit` with each record of the host and the device in `stretches`, or with all if there
/// are none. Frames of Python are too many to compare, and ranges on the device are no work.
template <class Visit>
void each_record_in(const Trace& trace, const Stretches& stretches, const Visit& visit) {
  const auto is_inside = [&](std::int64_t time) {
    return stretches.empty() || std::ranges::any_of(stretches, [&](const auto& stretch) {
             return stretch.first <= time && time < stretch.second;
           });
  };
  std::unordered_set<std::uint32_t> calls;
  for (const HostRecord& record : trace.hosts) {
    if (record.kind == HostKind::python || !is_inside(record.start_ns)) continue;
    if (is_call(record.kind) && record.correlation != 0) calls.insert(record.correlation);
    visit(record);
  }
  for (const DeviceRecord& record : trace.devices) {
    if (record.kind == DeviceKind::annotation) continue;
    if (stretches.empty() || calls.contains(record.correlation)) visit(record);
  }
}

}  // namespace

DiffSide side_of(const Rank& rank) {
  return {rank.inference.graph, rank.inference.recorded, &*rank.trace};
}

SideSteps side_steps(const DiffSide& side) {
  SideSteps steps{step_marks(side.graph, side.timeline), step_times(side.graph, side.timeline), {}};
  std::vector<std::size_t> tasks(side.graph.steps().size(), 0);
  for (std::uint32_t i = 0; i < side.graph.task_count(); ++i) {
    const std::int32_t step = side.graph.task(TaskId{i}).step;
    if (step >= 0 && static_cast<std::size_t>(step) < tasks.size() &&
        !side.graph.removed(TaskId{i}))
      ++tasks[static_cast<std::size_t>(step)];
  }
  for (const StepMark& mark : steps.marks)
    steps.tasks.push_back(tasks[static_cast<std::size_t>(mark.step)]);
  return steps;
}

namespace {

/// At most this many steps that differ by at least this much have no typical one among them.
constexpr std::ptrdiff_t kFewCompared = 3;
constexpr double kUnlikeSteps = 0.1;

std::ptrdiff_t counted_distances(const SideSteps& steps) {
  return std::ssize(steps.marks) - 1 - static_cast<std::ptrdiff_t>(steps.times.first);
}

std::size_t steps_to_compare(const SideSteps& before, const SideSteps& after) {
  const std::ptrdiff_t least = std::min(counted_distances(before), counted_distances(after));
  const std::int32_t period = before.times.period;
  if (period > 1 && period == after.times.period && period <= least)
    return static_cast<std::size_t>(period);
  const bool are_few = least > 1 && least <= kFewCompared &&
                       std::max(before.times.spread, after.times.spread) > kUnlikeSteps &&
                       counted_distances(before) == counted_distances(after);
  return are_few ? static_cast<std::size_t>(least) : 1;
}

Nanoseconds mean_of(const SideSteps& steps, std::size_t first, std::size_t count) {
  Nanoseconds sum{0};
  for (std::size_t i = first; i < first + count; ++i) sum += steps.times.each[i];
  return sum / static_cast<std::int64_t>(count);
}

std::size_t tasks_of(const SideSteps& steps, std::size_t first, std::size_t count) {
  std::size_t sum = 0;
  for (std::size_t i = first; i < first + count; ++i) sum += steps.tasks[i];
  return sum;
}

}  // namespace

ComparedSteps compared_steps(const SideSteps& before, const SideSteps& after) {
  ComparedSteps best;
  const auto number = [](const SideSteps& steps, std::size_t i) {
    return steps.marks.empty() ? -1 : steps.marks[i].step;
  };
  if (before.marks.size() >= 2 && after.marks.size() >= 2) {
    // The last step has no known end, because no mark follows it.
    const auto count_before = std::ssize(before.marks) - 1,
               count_after = std::ssize(after.marks) - 1;
    const std::ptrdiff_t more = count_after - count_before;
    best.count = steps_to_compare(before, after);
    const auto behind = static_cast<std::ptrdiff_t>(best.count) - 1;
    best.before = before.times.first, best.after = after.times.first;
    double least = -1;
    for (std::ptrdiff_t shift = std::min<std::ptrdiff_t>(0, more);
         shift <= std::max<std::ptrdiff_t>(0, more); ++shift) {
      for (auto a = static_cast<std::ptrdiff_t>(before.times.first); a + behind < count_before;
           ++a) {
        const std::ptrdiff_t b = a + shift;
        if (b < static_cast<std::ptrdiff_t>(after.times.first) || b + behind >= count_after)
          continue;
        const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
        const double off =
            distance_from(mean_of(before, i, best.count), before.times.step_time) +
            distance_from(mean_of(after, j, best.count), after.times.step_time) +
            relative_difference(tasks_of(before, i, best.count), tasks_of(after, j, best.count));
        if (least >= 0 && off >= least) continue;
        least = off;
        best.before = i, best.after = j;
      }
    }
  }
  best.step_before = number(before, best.before);
  best.step_after = number(after, best.after);
  return best;
}

DiffSideReport side_report(const DiffSide& side, const SideSteps& steps, const SideWindow& window) {
  const Graph& graph = side.graph;
  DiffSideReport report;
  for (const std::string& name : graph.device_names()) {
    if (report.device.empty()) report.device = name;
  }
  report.step_time = steps.times.step_time;
  report.has_steps = !steps.marks.empty();
  report.steps = steps.marks.size();
  report.compared = report.step_time;
  report.times = steps.times;
  report.compared_steps = window.count;
  if (window.mark + window.count <= steps.times.each.size())
    report.compared = mean_of(steps, window.mark, window.count);
  if (window.step >= 0 && static_cast<std::size_t>(window.step) < graph.steps().size())
    report.compared_step = graph.steps()[static_cast<std::size_t>(window.step)].name;
  report.content = content_of(graph, window);
  report.breakdown = breakdown(graph, side.timeline);
  if (const auto full = fullest_device(side)) report.peak_allocated = full->peak;
  report.tasks = graph.task_count();
  return report;
}

std::vector<NameChange> name_changes(const DiffSide& before, const SideWindow& window_before,
                                     const DiffSide& after, const SideWindow& window_after) {
  if (before.trace == nullptr || after.trace == nullptr) return {};
  Stretches left = stretches_of(before, window_before), right = stretches_of(after, window_after);
  if (left.empty() || right.empty()) left.clear(), right.clear();
  std::map<std::string_view, NameChange> by_name;
  each_record_in(*before.trace, left, [&](const auto& record) {
    NameChange& change = by_name[before.trace->names[record.name]];
    ++change.count_before, change.time_before += Nanoseconds(record.duration_ns);
  });
  each_record_in(*after.trace, right, [&](const auto& record) {
    NameChange& change = by_name[after.trace->names[record.name]];
    ++change.count_after, change.time_after += Nanoseconds(record.duration_ns);
  });
  std::vector<NameChange> changes;
  for (auto& [name, change] : by_name) {
    change.name = name;
    changes.push_back(std::move(change));
  }
  const auto size = [](const NameChange& change) {
    return std::abs((change.time_after - change.time_before).count());
  };
  std::ranges::stable_sort(changes, std::ranges::greater{}, size);
  return changes;
}

void add_warnings_of(const Notes& notes, std::string_view side, Notes& to) {
  for (const Note& note : notes.all()) {
    if (note.severity == Severity::warning)
      to.add(note.severity, fmt::format("{}: {}", side, note.text), note.example, note.count);
  }
}

std::vector<PeakChange> peak_changes(const DiffSide& before, const DiffSide& after) {
  const auto full_before = fullest_device(before), full_after = fullest_device(after);
  if (!full_before || !full_after) return {};
  std::map<std::string, PeakChange> by_op;
  for (const auto& [op, bytes] : in_use_at_peak(before, full_before->device))
    by_op[op].before = bytes;
  for (const auto& [op, bytes] : in_use_at_peak(after, full_after->device)) by_op[op].after = bytes;
  std::vector<PeakChange> changes;
  for (auto& [op, change] : by_op) {
    change.op = op;
    if (change.before != change.after) changes.push_back(change);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const PeakChange& a, const PeakChange& b) {
    return std::abs((a.after - a.before).count) > std::abs((b.after - b.before).count);
  });
  if (changes.size() > kMaxPeakChanges) changes.resize(kMaxPeakChanges);
  return changes;
}

}  // namespace foretrace
