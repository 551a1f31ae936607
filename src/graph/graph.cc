#include "foretrace/graph.h"

#include "foretrace/error.h"
#include "graph/storage.h"

namespace foretrace {

Graph::Graph() : impl_(std::make_unique<Impl>()) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph Graph::clone() const {
  Graph copy;
  Impl& to = *copy.impl_;
  to.names = impl_->names.clone();
  to.lanes = impl_->lanes;
  to.lines = impl_->lines;
  to.tasks = impl_->tasks;
  to.places = impl_->places;
  to.dependencies = impl_->dependencies;
  to.collectives = impl_->collectives;
  to.allocations = impl_->allocations;
  to.accesses = impl_->accesses;
  to.initial_memory = impl_->initial_memory;
  to.device_names = impl_->device_names;
  to.steps = impl_->steps;
  to.step_rule = impl_->step_rule;
  to.unexplained = impl_->unexplained;
  return copy;
}

Names& Graph::names() { return impl_->names; }
const Names& Graph::names() const { return impl_->names; }

LaneId Graph::add_lane(Lane lane) {
  CHECK(impl_->lanes.size() < Place::kRemoved);
  impl_->lanes.push_back(std::move(lane));
  impl_->lines.emplace_back();
  return LaneId{static_cast<std::uint32_t>(impl_->lanes.size() - 1)};
}

const Lane& Graph::lane(LaneId id) const { return impl_->lanes[index(id)]; }
Lane& Graph::lane(LaneId id) { return impl_->lanes[index(id)]; }
std::size_t Graph::lane_count() const { return impl_->lanes.size(); }

void Graph::reserve(std::size_t tasks, std::size_t dependencies) {
  impl_->tasks.reserve(tasks);
  impl_->places.reserve(tasks);
  impl_->dependencies.reserve(dependencies);
}

Task& Graph::task(TaskId id) { return impl_->tasks[index(id)]; }
const Task& Graph::task(TaskId id) const { return impl_->tasks[index(id)]; }
std::size_t Graph::task_count() const { return impl_->tasks.size(); }

std::vector<RecordedCollective>& Graph::collectives() { return impl_->collectives; }
const std::vector<RecordedCollective>& Graph::collectives() const { return impl_->collectives; }
std::vector<Allocation>& Graph::allocations() { return impl_->allocations; }
const std::vector<Allocation>& Graph::allocations() const { return impl_->allocations; }
std::vector<Access>& Graph::accesses() { return impl_->accesses; }
const std::vector<Access>& Graph::accesses() const { return impl_->accesses; }
std::vector<Bytes>& Graph::initial_memory() { return impl_->initial_memory; }
const std::vector<Bytes>& Graph::initial_memory() const { return impl_->initial_memory; }
std::vector<std::string>& Graph::device_names() { return impl_->device_names; }
const std::vector<std::string>& Graph::device_names() const { return impl_->device_names; }
std::vector<Step>& Graph::steps() { return impl_->steps; }
const std::vector<Step>& Graph::steps() const { return impl_->steps; }
StepRule& Graph::step_rule() { return impl_->step_rule; }
const StepRule& Graph::step_rule() const { return impl_->step_rule; }
Unexplained& Graph::unexplained() { return impl_->unexplained; }
const Unexplained& Graph::unexplained() const { return impl_->unexplained; }

}  // namespace foretrace
