#include <algorithm>
#include <map>
#include <tuple>

#include "foretrace/timeline.h"

namespace foretrace {
namespace {

/// At one instant blocks that were there before are freed first, then blocks are made, then those
/// that were only just made are freed: the level is never below what it can have been.
enum class Turn : std::uint8_t { free_old, make, free_new };

struct Change {
  Nanoseconds time{};
  Turn turn{};
  Bytes bytes{};
  TaskId task = kNoTask;
};

struct Device {
  Bytes known_before{};  ///< Of blocks that nothing in the recording made.
  std::vector<Change> changes;
};

void add_changes(const Allocation& block, const Timeline& timeline, Device& device) {
  if (block.made_by == kNoTask) {
    device.known_before += block.bytes;
  } else {
    device.changes.push_back(
        {timeline.start[index(block.made_by)], Turn::make, block.bytes, block.made_by});
  }
  if (block.freed_by == kNoTask) return;
  const Nanoseconds freed = timeline.start[index(block.freed_by)];
  if (block.made_by == kNoTask) {
    device.changes.push_back({freed, Turn::free_old, Bytes{} - block.bytes, block.freed_by});
    return;
  }
  // An edited graph may free a block in front of where it makes it; it is then held for no time.
  const Nanoseconds made = timeline.start[index(block.made_by)];
  const Turn turn = freed > made ? Turn::free_old : Turn::free_new;
  device.changes.push_back({std::max(freed, made), turn, Bytes{} - block.bytes, block.freed_by});
}

MemoryCurve curve_of(std::int32_t number, Bytes initial, std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.time, a.turn, a.task) < std::tie(b.time, b.turn, b.task);
  });
  MemoryCurve curve;
  curve.device = number;
  curve.points.push_back({0ns, initial});
  curve.peak = initial;
  Bytes level = initial;
  for (const Change& change : changes) {
    level += change.bytes;
    if (level > curve.peak)
      curve.peak = level, curve.peak_time = change.time, curve.peak_task = change.task;
    if (curve.points.back().time != change.time) curve.points.push_back({change.time, {}});
    curve.points.back().allocated = level;
  }
  return curve;
}

}  // namespace

std::vector<MemoryCurve> memory_curves(const Graph& graph, const Timeline& timeline) {
  std::map<std::int32_t, Device> devices;
  for (const Allocation& block : graph.allocations())
    add_changes(block, timeline, devices[block.device]);
  std::vector<MemoryCurve> curves;
  for (auto& [number, device] : devices) {
    // What was in use at first includes the known blocks, where the recording says it at all.
    Bytes initial = device.known_before;
    if (number >= 0 && static_cast<std::size_t>(number) < graph.initial_memory().size()) {
      initial = std::max(initial, graph.initial_memory()[static_cast<std::size_t>(number)]);
    }
    curves.push_back(curve_of(number, initial, std::move(device.changes)));
  }
  return curves;
}

}  // namespace foretrace
