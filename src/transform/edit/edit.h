#pragma once

// Functions that transforms share: to find launches and groups of tasks, to edit a graph, and to
// word the effect.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/wording.h"
#include "foretrace/graph.h"
#include "foretrace/transform.h"

namespace foretrace {

/// The call that launched each device task. Built in one pass over all dependencies; valid until
/// the graph is edited.
class Launches {
 public:
  explicit Launches(const Graph& graph);

  /// Returns kNoTask if the trace does not say.
  TaskId launch_of(TaskId task) const;
  /// Returns how many device tasks `launch` launched.
  std::size_t count(TaskId launch) const;

 private:
  std::vector<TaskId> launch_of_;
  std::vector<std::uint32_t> count_;
};

/// Removes the launches whose device tasks are all among `tasks`. Returns how many it removed.
std::size_t remove_launches_of(Graph& graph, const Launches& launches,
                               const std::vector<TaskId>& tasks);

/// Removes `calls` together with their waits for the device (for a place in the launch queue).
/// Waits between host tasks pass through the removed calls. Linear in all dependencies.
void remove_calls(Graph& graph, const std::vector<TaskId>& calls);

/// Sorts by start, then by id. REQUIRES: `starts` has an element for each task of the graph.
void sort_by_start(std::vector<TaskId>& tasks, const std::vector<Nanoseconds>& starts);

/// Returns the lane of this name on the rank and device of `like`; adds it, with the kind of
/// `like`, if there is none.
LaneId lane_named(Graph& graph, std::string_view name, LaneId like);

/// The first task of each step, in the order given.
std::vector<TaskId> first_of_each_step(const Graph& graph, const std::vector<TaskId>& tasks);

using Group = std::vector<TaskId>;

/// Splits tasks, given in lane order, into groups; a group never spans lanes. `by` is "each", "run"
/// (tasks that directly follow each other on the lane), "layer" (of one step and phase), "step" or
/// "all".
std::vector<Group> grouped(const Graph& graph, const std::vector<TaskId>& tasks,
                           std::string_view by);

/// Whether a dependency makes `task` wait; its place on the lane does not count. Linear in its
/// waits.
bool has_waits(const Graph& graph, TaskId task);

/// Removes every dependency that begins or ends at one of `tasks`. Linear in all dependencies.
void drop_dependencies_of(Graph& graph, const std::vector<TaskId>& tasks);

Nanoseconds total_duration(const Graph& graph, const std::vector<TaskId>& tasks);

/// Passes the duration of each task through `wanted`. The effect counts the durations that changed.
Effect change_durations(Graph& graph, const std::vector<TaskId>& tasks,
                        const std::function<Nanoseconds(Nanoseconds)>& wanted);

/// Wraps `tasks` for a transform that treats all of them alike.
std::vector<RetimedTask> as_retimed(const std::vector<TaskId>& tasks);

/// Returns `amount` times `count`, at most the greatest 64-bit value; 0 if either is not positive.
Bytes times(Bytes amount, std::int64_t count);

/// "744 kernel tasks"; where there are several kinds "748 tasks (744 kernel, 4 copy_in)".
std::string tasks_by_kind(const Graph& graph, const std::vector<TaskId>& tasks);

/// Adds a note with this count, unless it is 0.
void note_count(Effect& effect, Severity severity, std::string_view text, std::size_t count);

/// Returns, for each task, the greatest number of a task that it is, or that it waits for directly
/// or indirectly; its place on a FIFO lane is a wait too. `numbers` has an element for each task of
/// the graph. Throws Error if tasks wait for each other in a cycle. Linear.
std::vector<std::size_t> greatest_awaited(const Graph& graph, std::vector<std::size_t> numbers);

}  // namespace foretrace
