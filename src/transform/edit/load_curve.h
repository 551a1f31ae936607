#pragma once

// The memory in use on a device over time, while a plan removes blocks from it. A segment tree
// lowers ranges and finds the peak and areas in logarithmic time.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

class LoadCurve {
 public:
  /// Describes `device`, with `events` from memory_events().
  LoadCurve(const Graph& graph, const Timeline& timeline, const std::vector<MemoryEvent>& events,
            std::int32_t device);

  Bytes peak() const { return Bytes{nodes_[1].highest}; }
  /// A period between two allocator events, in which the level is constant.
  struct Interval {
    Nanoseconds start{}, finish{};
  };
  /// Returns the first interval with the greatest level.
  Interval peak_interval() const;

  /// Lowers the level by `size` in every interval that lies entirely within [from, until).
  void lower(Nanoseconds from, Nanoseconds until, Bytes size);

  /// Returns bytes times nanoseconds, summed over the intervals that lie entirely within [from,
  /// until); for ranking.
  double area(Nanoseconds from, Nanoseconds until) const;

 private:
  struct Node {
    std::int64_t highest = 0;
    std::int64_t added = 0;  ///< Applies to the whole subtree; not included in the children.
    double area = 0;
    double width = 0;
  };
  using Range = std::pair<std::size_t, std::size_t>;

  Range within(Nanoseconds from, Nanoseconds until) const;
  void build(std::size_t node, std::size_t first, std::size_t last,
             const std::vector<std::int64_t>& levels);
  void add(std::size_t node, Range of_node, Range range, std::int64_t amount);
  double area(std::size_t node, Range of_node, Range range, std::int64_t added) const;
  void update(std::size_t node);

  std::vector<Nanoseconds> times_;  ///< The start of each interval, then the end of the last one.
  std::vector<Node> nodes_;
};

}  // namespace foretrace
