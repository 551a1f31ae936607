#pragma once

// How full a device is over time, while a plan takes blocks away from it. A segment tree: ranges
// are lowered, and the peak and areas found, in logarithmic time.

#include <cstddef>
#include <cstdint>
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
  /// The first stretch without an allocator event in which the level is greatest.
  struct Stretch {
    Nanoseconds start{}, finish{};
  };
  Stretch peak_stretch() const;

  /// Takes `size` away wherever it is away for the whole of a stretch within [from, until).
  void lower(Nanoseconds from, Nanoseconds until, Bytes size);

  /// Bytes times nanoseconds of the stretches within [from, until); for ranking.
  double area(Nanoseconds from, Nanoseconds until) const;

 private:
  struct Node {
    std::int64_t highest = 0;
    std::int64_t added = 0;  ///< To all below, not yet told to them.
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

  std::vector<Nanoseconds>
      times_;  ///< Stretches begin at these times; the last one ends at the last.
  std::vector<Node> nodes_;
};

}  // namespace foretrace
