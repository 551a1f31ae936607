#pragma once

// A graph as compressed sparse rows in topological order: the form that is replayed.
//
//     task       0   1   2   3        position in topological order
//     first      0 0   1     3   5    its waits are those from first[task] to first[task + 1] ...
//     before       0   0 1   1 2      ... the tasks they are for, all of them in front of it
//
// As boost::compressed_sparse_row_graph keeps out-edges, but for the waits of a task: a task then
// pulls its start from tasks that are done, and nothing has to be counted down.

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// Times as the plain numbers they are made of, for tight loops.
inline const std::int64_t* as_counts(std::span<const Nanoseconds> times) {
  static_assert(sizeof(Nanoseconds) == sizeof(std::int64_t) &&
                std::is_standard_layout_v<Nanoseconds>);
  return reinterpret_cast<const std::int64_t*>(times.data());
}
inline std::int64_t* as_counts(std::span<Nanoseconds> times) {
  return const_cast<std::int64_t*>(as_counts(std::span<const Nanoseconds>(times)));
}

struct Rows {
  /// In `before`: counts from the start of the task, not from its finish; less its tail.
  static constexpr std::uint32_t kFromStart = 0x80000000, kTail = 0x40000000;
  static constexpr std::uint32_t kFlags = kFromStart | kTail;

  std::vector<std::uint32_t> position;  ///< Has one entry per task of the graph.
  std::vector<std::uint32_t> first;     ///< One more than there are tasks.
  std::vector<std::uint32_t> before;
  std::vector<std::int64_t>
      lag;  ///< Has one entry per wait; empty if there is neither a lag nor a flag.
  std::vector<double> tail;  ///< Share of each wait; empty if there is no kTail.
  std::vector<Nanoseconds> duration;
  std::uint32_t reach = 1;  ///< The farthest that a task looks back.

  std::size_t task_count() const { return duration.size(); }
  const std::int64_t* durations() const {
    return as_counts(std::span<const Nanoseconds>(duration));
  }
  std::size_t bytes() const;
};

/// Whether tasks that stand in a topological order already keep it. `near`: not where some then
/// look far back, beyond what a cache holds of eight replays; making the rows then takes longer.
enum class RowOrder : std::uint8_t { kept, near };

/// For a graph whose tasks all stand on FIFO lanes. Throws Error if it has a cycle.
Rows make_rows(const Graph& graph, RowOrder order = RowOrder::kept);

}  // namespace foretrace
