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

}  // namespace foretrace
