#include "foretrace/graph.h"

#include "foretrace/error.h"

namespace foretrace {

Graph::Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph Graph::clone() const {
  Graph copy;
  Storage& to = copy.storage_;
  to.names = storage_.names.clone();
  to.lanes = storage_.lanes;
  to.lane_ends = storage_.lane_ends;
  to.tasks = storage_.tasks;
  to.task_links = storage_.task_links;
  to.dependencies = storage_.dependencies;
  to.collectives = storage_.collectives;
  to.allocations = storage_.allocations;
  to.accesses = storage_.accesses;
  to.initial_memory = storage_.initial_memory;
  to.device_names = storage_.device_names;
  to.gradient_estimate = storage_.gradient_estimate;
  to.autocast = storage_.autocast;
  to.steps = storage_.steps;
  to.step_rule = storage_.step_rule;
  to.unexplained = storage_.unexplained;
  return copy;
}

LaneId Graph::add_lane(Lane lane) {
  CHECK(storage_.lanes.size() < TaskLinks::kRemoved);
  storage_.lanes.push_back(std::move(lane));
  storage_.lane_ends.emplace_back();
  return LaneId{static_cast<std::uint32_t>(storage_.lanes.size() - 1)};
}

void Graph::reserve(std::size_t tasks, std::size_t dependencies) {
  storage_.tasks.reserve(tasks);
  storage_.task_links.reserve(tasks);
  storage_.dependencies.reserve(dependencies);
}

AccessLists::AccessLists(const Graph& graph)
    : begins_(graph.allocations().size() + 1), accesses_(graph.accesses().size()) {
  for (const Access& access : graph.accesses()) {
    CHECK(access.allocation + 1 < begins_.size());
    ++begins_[access.allocation + 1];
  }
  for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  for (const Access& access : graph.accesses()) accesses_[next[access.allocation]++] = access;
}

std::span<const Access> AccessLists::of(std::size_t allocation) const {
  return {accesses_.begin() + static_cast<std::ptrdiff_t>(begins_[allocation]),
          accesses_.begin() + static_cast<std::ptrdiff_t>(begins_[allocation + 1])};
}

// Dependencies, and the lists of them that each task keeps.

void Graph::Storage::link(std::uint32_t number) {
  const auto enter = [&](std::uint32_t& last, std::uint32_t LinkedDependency::*next) {
    if (last == kNothing) {
      dependencies[number].*next = number;
    } else {
      dependencies[number].*next = dependencies[last].*next;
      dependencies[last].*next = number;
    }
    last = number;
  };
  const Dependency& added = dependencies[number].dependency;
  enter(links_of(added.before).last_dependent, &LinkedDependency::next_dependent);
  enter(links_of(added.after).last_wait, &LinkedDependency::next_wait);
}

void Graph::add(const Dependency& dependency) {
  CHECK(index(dependency.before) < task_count() && index(dependency.after) < task_count());
  CHECK(storage_.dependencies.size() < kNothing);
  storage_.dependencies.push_back({dependency});
  storage_.link(static_cast<std::uint32_t>(storage_.dependencies.size() - 1));
}

std::size_t Graph::remove_dependencies(const std::function<bool(const Dependency&)>& condition) {
  std::vector<LinkedDependency>& all = storage_.dependencies;
  const auto dropped =
      std::erase_if(all, [&](const LinkedDependency& each) { return condition(each.dependency); });
  if (dropped == 0) return 0;
  for (TaskLinks& links : storage_.task_links) links.last_dependent = links.last_wait = kNothing;
  for (std::size_t i = 0; i < all.size(); ++i) storage_.link(static_cast<std::uint32_t>(i));
  return dropped;
}

void Graph::change_dependencies(const std::function<void(Dependency&)>& change) {
  const std::size_t count = storage_.dependencies.size();
  for (std::size_t i = 0; i < count; ++i) {
    Dependency changed = storage_.dependencies[i].dependency;
    change(changed);
    Dependency& kept = storage_.dependencies[i].dependency;
    changed.before = kept.before;
    changed.after = kept.after;
    kept = changed;
  }
}

}  // namespace foretrace
