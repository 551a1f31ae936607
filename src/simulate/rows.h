#pragma once

// A graph as compressed sparse rows in topological order: the form that the replay runs over.
//
//     task       0   1   2   3        position in topological order
//     first      0 0   1     3   5    its waits are at first[task] to first[task + 1] - 1 in ...
//     before       0   0 1   1 2      ... the tasks they wait for, all at smaller positions
//
// Like the out-edges of boost::compressed_sparse_row_graph, but for the waits of a task: a task
// then pulls its start from finished tasks, and no counters are needed.

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// Views times as plain integers, for tight loops.
inline const std::int64_t* as_counts(std::span<const Nanoseconds> times) {
  static_assert(sizeof(Nanoseconds) == sizeof(std::int64_t) &&
                std::is_standard_layout_v<Nanoseconds>);
  return reinterpret_cast<const std::int64_t*>(times.data());
}
inline std::int64_t* as_counts(std::span<Nanoseconds> times) {
  return const_cast<std::int64_t*>(as_counts(std::span<const Nanoseconds>(times)));
}

struct Rows {
  /// Flags in `before`: the wait counts from the start of the task instead of its finish; the tail
  /// of the task is subtracted.
  static constexpr std::uint32_t kFromStart = 0x80000000, kTail = 0x40000000;
  static constexpr std::uint32_t kFlags = kFromStart | kTail;

  std::vector<std::uint32_t> position;  ///< Row of each task of the graph.
  std::vector<std::uint32_t> first;     ///< Has task_count() + 1 entries.
  std::vector<std::uint32_t> before;
  std::vector<std::int64_t>
      lag;                   ///< One entry per wait; empty if there are neither lags nor flags.
  std::vector<double> tail;  ///< Share of each wait's tail; empty if no wait has kTail.
  std::vector<Nanoseconds> duration;
  /// The greatest distance, in rows, between a task and one that it waits for.
  std::uint32_t reach = 1;

  std::size_t task_count() const { return duration.size(); }
  const std::int64_t* durations() const {
    return as_counts(std::span<const Nanoseconds>(duration));
  }
  std::size_t bytes() const;
};

/// `kept` keeps the order of the tasks if it is topological. `near` does so only if no task then
/// looks back farther than the cache holds of eight replays; otherwise making the rows takes
/// longer.
enum class RowOrder : std::uint8_t { kept, near };

/// REQUIRES: all tasks are on FIFO lanes. Throws Error if the graph has a cycle.
Rows make_rows(const Graph& graph, RowOrder order = RowOrder::kept);

}  // namespace foretrace
