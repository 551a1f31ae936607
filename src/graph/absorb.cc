// Graph::absorb() appends the arrays of another graph, with every index shifted.

#include <map>
#include <optional>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/graph.h"

namespace foretrace {
namespace {

/// Translates names of one table to another.
class NameTranslator {
 public:
  NameTranslator(const Names& from, Names& to) : from_(from), to_(to), known_(from.size()) {}

  NameId operator()(NameId name) {
    std::optional<NameId>& known = known_[static_cast<std::uint32_t>(name)];
    if (!known) known = to_.intern(from_[name]);
    return *known;
  }
  WaitReason operator()(WaitReason why) {
    if (why.empty()) return why;
    const auto [found, is_new] = reasons_.try_emplace(why);
    if (is_new) found->second = wait_reason_named(to_, to_string(why, from_));
    return found->second;
  }

 private:
  const Names& from_;
  Names& to_;
  std::vector<std::optional<NameId>> known_;
  std::map<WaitReason, WaitReason> reasons_;
};

}  // namespace

Graph::IdOffsets Graph::absorb(const Graph& other) {
  Storage& to = storage_;
  const Storage& from = other.storage_;
  CHECK(to.tasks.size() + from.tasks.size() < index(kNoTask));
  CHECK(to.dependencies.size() + from.dependencies.size() < kNothing);
  CHECK(to.lanes.size() + from.lanes.size() < TaskLinks::kRemoved);
  const auto lanes = static_cast<std::uint32_t>(to.lanes.size());
  const auto tasks = static_cast<std::uint32_t>(to.tasks.size());
  const auto waits = static_cast<std::uint32_t>(to.dependencies.size());
  const auto moved = [&](TaskId task) {
    return task == kNoTask ? task : TaskId{tasks + index(task)};
  };
  const auto moved_wait = [&](std::uint32_t wait) {
    return wait == kNothing ? wait : waits + wait;
  };
  NameTranslator translated(from.names, to.names);
  to.lanes.insert(to.lanes.end(), from.lanes.begin(), from.lanes.end());
  for (const LaneEnds& ends : from.lane_ends)
    to.lane_ends.push_back({moved(ends.first), moved(ends.last)});
  for (Task task : from.tasks) {
    task.name = translated(task.name), task.module = translated(task.module);
    to.tasks.push_back(task);
  }
  for (const TaskLinks& links : from.task_links) {
    to.task_links.push_back({.previous = moved(links.previous),
                             .next = moved(links.next),
                             .lane_and_removed = links.lane_and_removed + lanes,
                             .last_dependent = moved_wait(links.last_dependent),
                             .last_wait = moved_wait(links.last_wait)});
  }
  for (const LinkedDependency& linked : from.dependencies) {
    Dependency wait = linked.dependency;
    wait.before = moved(wait.before), wait.after = moved(wait.after);
    wait.why = translated(wait.why);
    to.dependencies.push_back(
        {wait, moved_wait(linked.next_dependent), moved_wait(linked.next_wait)});
  }
  return {lanes, tasks};
}

}  // namespace foretrace
