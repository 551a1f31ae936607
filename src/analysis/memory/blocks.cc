#include "analysis/memory/blocks.h"

#include <algorithm>

#include "analysis/place/source_line.h"
#include "base/statistics.h"

namespace foretrace {
namespace {

std::vector<DeviceMemory::StepSpan> step_spans(const Graph& graph, const Timeline& timeline) {
  constexpr Nanoseconds kNever = Nanoseconds::max();
  std::vector<Nanoseconds> host(graph.steps().size(), kNever), any(graph.steps().size(), kNever);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    const Task& task = graph.task(id);
    if (task.step < 0 || graph.removed(id)) continue;
    const auto step = static_cast<std::size_t>(task.step);
    if (step >= any.size()) continue;
    any[step] = std::min(any[step], timeline.start[i]);
    if (!runs_on_device(task.kind)) host[step] = std::min(host[step], timeline.start[i]);
  }
  std::vector<DeviceMemory::StepSpan> spans;
  for (std::size_t step = 0; step < any.size(); ++step) {
    if (any[step] == kNever) continue;
    const Nanoseconds begin = host[step] == kNever ? any[step] : host[step];
    spans.push_back({static_cast<std::int32_t>(step), begin, timeline.length});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i + 1 < spans.size(); ++i) spans[i].end = spans[i + 1].begin;
  return spans;
}

/// Adds a block; `number` is its index in Graph::allocations().
void add_block(std::uint32_t number, const Allocation& block, DeviceMemory& memory) {
  memory.blocks.push_back({.allocation = number,
                           .made = 0ns,
                           .freed = memory.end,
                           .was_there = block.made_by == kNoTask,
                           .is_left = block.freed_by == kNoTask});
}

void set_times(DeviceMemory& memory) {
  std::vector<std::uint32_t> block_number(memory.graph.allocations().size());
  for (std::uint32_t i = 0; i < memory.blocks.size(); ++i)
    block_number[memory.blocks[i].allocation] = i;
  for (const MemoryEvent& event : memory.events) {
    TimedBlock& block = memory.blocks[block_number[event.allocation]];
    (event.frees ? block.freed : block.made) = event.time;
  }
}

}  // namespace

DeviceMemory device_memory(const Graph& graph, const Timeline& timeline, std::int32_t device) {
  DeviceMemory memory{graph, timeline, device, 0ns, timeline.length, {}, {}, {}, {}, 0ns};
  memory.end = timeline.length;
  for (const MemoryEvent& event : memory_events(graph, timeline)) {
    if (memory.allocation(event.allocation).device == device) memory.events.push_back(event);
  }
  if (!memory.events.empty()) memory.end = std::max(memory.end, memory.events.back().time);
  memory.to = memory.end;
  Bytes known{};
  const std::vector<Allocation>& all = graph.allocations();
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].device != device || all[i].bytes <= Bytes{}) continue;
    add_block(i, all[i], memory);
    if (all[i].made_by == kNoTask) known += all[i].bytes;
  }
  set_times(memory);
  memory.unnamed = memory.initial() - known;
  memory.steps = step_spans(graph, timeline);
  return memory;
}

TaskId task_of(const Graph& graph, const MemoryEvent& event) {
  const Allocation& block = graph.allocations()[event.allocation];
  return event.frees ? block.freed_by : block.made_by;
}

std::vector<MemoryCurve::Point> level_curve(const DeviceMemory& memory) {
  std::vector<MemoryCurve::Point> curve = {{0ns, memory.initial()}};
  for (const MemoryEvent& event : memory.events) {
    const Bytes bytes = memory.allocation(event.allocation).bytes;
    const Bytes before = curve.back().allocated;
    if (curve.back().time != event.time) curve.push_back({event.time, before});
    curve.back().allocated = event.frees ? before - bytes : before + bytes;
  }
  return curve;
}

std::string maker_of(const Graph& graph, const Allocation& block) {
  const std::string_view op = graph.names()[block.op];
  if (!op.empty()) return std::string(op);
  if (block.made_by == kNoTask) return "(before the recording)";
  const std::string_view task = graph.name(block.made_by);
  return task.empty() ? "(unknown)" : std::string(task);
}

std::string line_of(const Graph& graph, const Allocation& block) {
  const std::string_view stack = graph.names()[block.stack];
  return stack.empty() ? std::string() : shown_frame(stack);
}

MemoryMoment moment_of(const Graph& graph, const Timeline& timeline, std::uint32_t allocation,
                       Nanoseconds time) {
  const Allocation& block = graph.allocations()[allocation];
  MemoryMoment moment;
  moment.time = time;
  moment.bytes = block.bytes;
  moment.op = maker_of(graph, block);
  moment.line = line_of(graph, block);
  if (block.made_by == kNoTask) return moment;
  const Task& task = graph.task(block.made_by);
  moment.phase = task.phase;
  const auto spans = step_spans(graph, timeline);
  const auto span = std::find_if(spans.begin(), spans.end(), [&](const auto& one) {
    // A task without a step counts as part of the step that is running at this time.
    return task.step >= 0 ? one.step == task.step : one.begin <= time && time < one.end;
  });
  if (span == spans.end()) return moment;
  moment.step = graph.steps()[static_cast<std::size_t>(span->step)].name;
  moment.in_step = std::max(time - span->begin, 0ns);
  return moment;
}

Quantiles quantiles(std::vector<Nanoseconds> times) {
  const auto at = [&](std::size_t percent) { return lower_quantile(times, percent); };
  return {at(0), at(10), at(50), at(90), at(100)};
}

TimeHistogram::TimeHistogram() {
  bins_.push_back({});
  for (Nanoseconds from = 1us; from <= 10s; from *= 10) bins_.push_back({.from = from});
}

TimeBin& TimeHistogram::bin_of(Nanoseconds time) {
  const auto behind =
      std::upper_bound(bins_.begin(), bins_.end(), time,
                       [](Nanoseconds value, const TimeBin& bin) { return value < bin.from; });
  return behind == bins_.begin() ? bins_.front() : *std::prev(behind);
}

std::vector<TimeBin> TimeHistogram::trimmed_bins() const {
  const auto is_used = [](const TimeBin& bin) { return bin.count > 0; };
  const auto first = std::find_if(bins_.begin(), bins_.end(), is_used);
  const auto last = std::find_if(bins_.rbegin(), bins_.rend(), is_used).base();
  return first < last ? std::vector<TimeBin>(first, last) : std::vector<TimeBin>();
}

}  // namespace foretrace
