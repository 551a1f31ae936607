#include "transform/edit/load_curve.h"

#include <algorithm>

namespace foretrace {

LoadCurve::LoadCurve(const Graph& graph, const Timeline& timeline,
                     const std::vector<MemoryEvent>& events, std::int32_t device)
    : times_{0ns} {
  std::int64_t level = initial_memory(graph, device).count;
  std::vector<std::int64_t> levels = {level};
  for (const MemoryEvent& event : events) {
    const Allocation& block = graph.allocations()[event.allocation];
    if (block.device != device) continue;
    level += event.frees ? -block.bytes.count : block.bytes.count;
    if (event.time == times_.back()) {
      // A block held for an instant counts too: the device must have room for it.
      levels.back() = std::max(levels.back(), level);
    } else {
      times_.push_back(event.time);
      levels.push_back(level);
    }
  }
  times_.push_back(std::max(timeline.length, times_.back()));
  nodes_.resize(4 * levels.size());
  build(1, 0, levels.size(), levels);
}

void LoadCurve::update(std::size_t node) {
  const Node &left = nodes_[2 * node], &right = nodes_[2 * node + 1];
  Node& here = nodes_[node];
  here.highest = std::max(left.highest, right.highest) + here.added;
  here.area = left.area + right.area + static_cast<double>(here.added) * here.width;
}

void LoadCurve::build(std::size_t node, std::size_t first, std::size_t last,
                      const std::vector<std::int64_t>& levels) {
  nodes_[node].width = static_cast<double>((times_[last] - times_[first]).count());
  if (last - first == 1) {
    nodes_[node].highest = levels[first];
    nodes_[node].area = static_cast<double>(levels[first]) * nodes_[node].width;
    return;
  }
  const std::size_t middle = (first + last) / 2;
  build(2 * node, first, middle, levels);
  build(2 * node + 1, middle, last, levels);
  update(node);
}

LoadCurve::Interval LoadCurve::peak_interval() const {
  std::size_t node = 1, first = 0, last = times_.size() - 1;
  while (last - first > 1) {
    const std::size_t middle = (first + last) / 2;
    const bool left = nodes_[2 * node].highest >= nodes_[2 * node + 1].highest;
    node = 2 * node + (left ? 0 : 1);
    (left ? last : first) = middle;
  }
  return {times_[first], times_[last]};
}

LoadCurve::Range LoadCurve::within(Nanoseconds from, Nanoseconds until) const {
  const auto first = std::lower_bound(times_.begin(), times_.end(), from);
  const auto behind = std::upper_bound(times_.begin(), times_.end(), until);
  const auto begin = static_cast<std::size_t>(first - times_.begin());
  const auto end = static_cast<std::size_t>(behind - times_.begin());
  return {begin, end == 0 ? 0 : end - 1};
}

void LoadCurve::lower(Nanoseconds from, Nanoseconds until, Bytes size) {
  const Range range = within(from, until);
  if (range.first < range.second) add(1, {0, times_.size() - 1}, range, -size.count);
}

void LoadCurve::add(std::size_t node, Range of_node, Range range, std::int64_t amount) {
  if (range.second <= of_node.first || of_node.second <= range.first) return;
  if (range.first <= of_node.first && of_node.second <= range.second) {
    nodes_[node].highest += amount;
    nodes_[node].added += amount;
    nodes_[node].area += static_cast<double>(amount) * nodes_[node].width;
    return;
  }
  const std::size_t middle = (of_node.first + of_node.second) / 2;
  add(2 * node, {of_node.first, middle}, range, amount);
  add(2 * node + 1, {middle, of_node.second}, range, amount);
  update(node);
}

double LoadCurve::area(Nanoseconds from, Nanoseconds until) const {
  const Range range = within(from, until);
  return range.first < range.second ? area(1, {0, times_.size() - 1}, range, 0) : 0;
}

double LoadCurve::area(std::size_t node, Range of_node, Range range, std::int64_t added) const {
  if (range.second <= of_node.first || of_node.second <= range.first) return 0;
  if (range.first <= of_node.first && of_node.second <= range.second)
    return nodes_[node].area + static_cast<double>(added) * nodes_[node].width;
  const std::size_t middle = (of_node.first + of_node.second) / 2;
  added += nodes_[node].added;
  return area(2 * node, {of_node.first, middle}, range, added) +
         area(2 * node + 1, {middle, of_node.second}, range, added);
}

}  // namespace foretrace
