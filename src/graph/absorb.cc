// Graph::absorb() appends the arrays of another graph, with every index shifted.

#include <map>
#include <optional>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/graph.h"

namespace foretrace {
namespace {

/// Translates names of one table to another.
class Renamed {
 public:
  Renamed(const Names& from, Names& to) : from_(from), to_(to), known_(from.size()) {}

  NameId operator()(NameId name) {
    std::optional<NameId>& known = known_[static_cast<std::uint32_t>(name)];
    if (!known) known = to_.intern(from_[name]);
    return *known;
  }
  Why operator()(Why why) {
    if (why.empty()) return why;
    const auto [found, is_new] = reasons_.try_emplace(why);
    if (is_new) found->second = why_named(to_, to_string(why, from_));
    return found->second;
  }

 private:
  const Names& from_;
  Names& to_;
  std::vector<std::optional<NameId>> known_;
  std::map<Why, Why> reasons_;
};

}  // namespace

Graph::Absorbed Graph::absorb(const Graph& other) {
  Storage& to = storage_;
  const Storage& from = other.storage_;
  CHECK(to.tasks.size() + from.tasks.size() < index(kNoTask));
  CHECK(to.dependencies.size() + from.dependencies.size() < kNothing);
  CHECK(to.lanes.size() + from.lanes.size() < Place::kRemoved);
  const auto lanes = static_cast<std::uint32_t>(to.lanes.size());
  const auto tasks = static_cast<std::uint32_t>(to.tasks.size());
  const auto waits = static_cast<std::uint32_t>(to.dependencies.size());
  const auto moved = [&](TaskId task) {
    return task == kNoTask ? task : TaskId{tasks + index(task)};
  };
  const auto moved_wait = [&](std::uint32_t wait) {
    return wait == kNothing ? wait : waits + wait;
  };
  Renamed renamed(from.names, to.names);
  to.lanes.insert(to.lanes.end(), from.lanes.begin(), from.lanes.end());
  for (const Line& line : from.lines) to.lines.push_back({moved(line.first), moved(line.last)});
  for (Task task : from.tasks) {
    task.name = renamed(task.name), task.module = renamed(task.module);
    to.tasks.push_back(task);
  }
  for (const Place& place : from.places) {
    to.places.push_back({.previous = moved(place.previous),
                         .next = moved(place.next),
                         .lane_and_removed = place.lane_and_removed + lanes,
                         .last_dependent = moved_wait(place.last_dependent),
                         .last_wait = moved_wait(place.last_wait)});
  }
  for (const Linked& linked : from.dependencies) {
    Dependency wait = linked.dependency;
    wait.before = moved(wait.before), wait.after = moved(wait.after);
    wait.why = renamed(wait.why);
    to.dependencies.push_back(
        {wait, moved_wait(linked.next_dependent), moved_wait(linked.next_wait)});
  }
  return {lanes, tasks};
}

}  // namespace foretrace
