#include <algorithm>
#include <map>
#include <tuple>

#include "foretrace/timeline.h"

namespace foretrace {
namespace {

/// Orders events at the same time whose order is not recorded: old blocks are freed, then blocks
/// are made, then blocks just made are freed, so that the level never falls below a possible one.
enum class TieOrder : std::uint8_t { free_old, make, free_new };

struct OrderedEvent {
  MemoryEvent event;
  std::uint32_t order = 0;
  TieOrder tie_order{};

  auto key() const { return std::tuple(event.time, order, tie_order, event.allocation); }
};

Nanoseconds time_of(TaskId task, Nanoseconds after, const Timeline& timeline) {
  const Nanoseconds start = timeline.start[index(task)];
  return start + std::clamp(after, 0ns, timeline.finish[index(task)] - start);
}

void add_events(const Allocation& block, std::uint32_t number, const Timeline& timeline,
                std::vector<OrderedEvent>& events) {
  Nanoseconds made = Nanoseconds::min();
  if (block.made_by != kNoTask) {
    made = time_of(block.made_by, block.made_after, timeline);
    events.push_back({{made, number, false}, block.made_order, TieOrder::make});
  }
  if (block.freed_by == kNoTask) return;
  const Nanoseconds freed = time_of(block.freed_by, block.freed_after, timeline);
  const bool in_order = std::tie(freed, block.freed_order) > std::tie(made, block.made_order);
  OrderedEvent free{{std::max(freed, made), number, true}, block.freed_order, TieOrder::free_old};
  if (freed <= made) free.tie_order = TieOrder::free_new;
  if (!in_order) free.order = block.made_order;
  events.push_back(free);
}

}  // namespace

std::vector<MemoryEvent> memory_events(const Graph& graph, const Timeline& timeline) {
  std::vector<OrderedEvent> ordered;
  ordered.reserve(2 * graph.allocations().size());
  for (std::uint32_t i = 0; i < graph.allocations().size(); ++i) {
    if (graph.allocations()[i].bytes > Bytes{})
      add_events(graph.allocations()[i], i, timeline, ordered);
  }
  std::sort(ordered.begin(), ordered.end(),
            [](const OrderedEvent& a, const OrderedEvent& b) { return a.key() < b.key(); });
  std::vector<MemoryEvent> events;
  events.reserve(ordered.size());
  for (const OrderedEvent& each : ordered) events.push_back(each.event);
  return events;
}

Bytes initial_memory(const Graph& graph, std::int32_t device) {
  Bytes known_bytes{};
  for (const Allocation& block : graph.allocations()) {
    if (block.device == device && block.made_by == kNoTask) known_bytes += block.bytes;
  }
  // The initial memory, if it was recorded, includes the known blocks.
  const auto number = static_cast<std::size_t>(device);
  if (device < 0 || number >= graph.initial_memory().size()) return known_bytes;
  return std::max(known_bytes, graph.initial_memory()[number]);
}

std::vector<MemoryCurve> memory_curves(const Graph& graph, const Timeline& timeline) {
  std::map<std::int32_t, MemoryCurve> curves;
  for (const Allocation& block : graph.allocations()) curves[block.device].device = block.device;
  for (auto& [device, curve] : curves) {
    curve.peak = initial_memory(graph, device);
    curve.points.push_back({0ns, curve.peak});
  }
  for (const MemoryEvent& event : memory_events(graph, timeline)) {
    const Allocation& block = graph.allocations()[event.allocation];
    MemoryCurve& curve = curves[block.device];
    const Bytes before = curve.points.back().allocated;
    const Bytes level = event.frees ? before - block.bytes : before + block.bytes;
    if (level > curve.peak) {
      curve.peak = level, curve.peak_time = event.time, curve.peak_task = block.made_by;
    }
    if (curve.points.back().time != event.time) curve.points.push_back({event.time, {}});
    curve.points.back().allocated = level;
  }
  std::vector<MemoryCurve> all;
  for (auto& [device, curve] : curves) all.push_back(std::move(curve));
  return all;
}

}  // namespace foretrace
