#pragma once

// Several transforms share these functions to find their way in a graph and to say what they did.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/transform.h"

namespace foretrace {

/// Which call gave a device task its work. Built in one pass over all dependencies; holds as long
/// as the graph is not edited.
class Launches {
 public:
  explicit Launches(const Graph& graph);

  /// kNoTask where the trace does not say.
  TaskId launch_of(TaskId task) const;
  /// How many device tasks `launch` gave work to.
  std::size_t count(TaskId launch) const;

 private:
  std::vector<TaskId> launch_of_;
  std::vector<std::uint32_t> count_;
};

/// Removes the launches all of whose device tasks are among `tasks`. Returns how many.
std::size_t remove_launches_of(Graph& graph, const Launches& launches,
                               const std::vector<TaskId>& tasks);

/// Removes calls that are no longer made. They no longer wait for the device either (for a place in
/// the launch queue); waits between host tasks go through them. Linear in all dependencies.
void remove_calls(Graph& graph, const std::vector<TaskId>& calls);

/// Sorts by `starts`, equal ones by id.
void sort_by_start(std::vector<TaskId>& tasks, const std::vector<Nanoseconds>& starts);

/// The lane of this name on the rank and device of `like`; added, with the kind of `like`, if there
/// is none.
LaneId lane_named(Graph& graph, std::string_view name, LaneId like);

/// The first task of each step, in the order given.
std::vector<TaskId> first_of_each_step(const Graph& graph, const std::vector<TaskId>& tasks);

using Group = std::vector<TaskId>;

/// Splits tasks in order of their lines into groups; a group never crosses lanes. By "each", "run"
/// (tasks that directly follow each other on the lane), "layer" (of one step and phase), "step",
/// "all".
std::vector<Group> grouped(const Graph& graph, const std::vector<TaskId>& tasks,
                           std::string_view by);

/// Whether any dependency makes it wait, its place in line aside. Linear in their number.
bool has_waits(const Graph& graph, TaskId task);

/// Drops every dependency that touches one of `tasks`. Linear in all dependencies.
void drop_dependencies_of(Graph& graph, const std::vector<TaskId>& tasks);

Nanoseconds total_duration(const Graph& graph, const std::vector<TaskId>& tasks);

/// Gives each task the duration that `wanted` makes of its own; says how many that changed.
Effect change_durations(Graph& graph, const std::vector<TaskId>& tasks,
                        const std::function<Nanoseconds(Nanoseconds)>& wanted);

/// For transforms that treat all of them alike.
std::vector<RetimedTask> as_retimed(const std::vector<TaskId>& tasks);

/// `amount` so many times, at most what 64 bits hold.
Bytes times(Bytes amount, std::int64_t count);

/// "744 kernel tasks"; where there are several kinds "748 tasks (744 kernel, 4 copy_in)".
std::string tasks_by_kind(const Graph& graph, const std::vector<TaskId>& tasks);

/// Adds a note that so many things were counted, unless there are none.
void note_count(Effect& effect, Severity severity, std::string_view text, std::size_t count);

/// "1 kernel", "3 kernels".
std::string counted(std::size_t count, std::string_view thing);

}  // namespace foretrace
