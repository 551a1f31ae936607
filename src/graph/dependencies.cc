// Dependencies, and the lists of them that each task has.

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "graph/storage.h"

namespace foretrace {
namespace {

/// Visits one list, which is a ring known by its last element.
void each_of_ring(const std::vector<Linked>& all, std::uint32_t last, std::uint32_t Linked::*next,
                  const std::function<void(const Dependency&)>& visit) {
  if (last == kNothing) return;
  std::uint32_t at = last;
  do {
    at = all[at].*next;
    const Dependency dependency = all[at].dependency;
    visit(dependency);
  } while (at != last);
}

}  // namespace

void Graph::Impl::link(std::uint32_t number) {
  const auto enter = [&](std::uint32_t& last, std::uint32_t Linked::*next) {
    if (last == kNothing) {
      dependencies[number].*next = number;
    } else {
      dependencies[number].*next = dependencies[last].*next;
      dependencies[last].*next = number;
    }
    last = number;
  };
  const Dependency& added = dependencies[number].dependency;
  enter(place(added.before).last_dependent, &Linked::next_dependent);
  enter(place(added.after).last_wait, &Linked::next_wait);
}

void Graph::add(const Dependency& dependency) {
  CHECK(index(dependency.before) < task_count() && index(dependency.after) < task_count());
  CHECK(impl_->dependencies.size() < kNothing);
  impl_->dependencies.push_back({dependency});
  impl_->link(static_cast<std::uint32_t>(impl_->dependencies.size() - 1));
}

std::size_t Graph::remove_dependencies(const std::function<bool(const Dependency&)>& condition) {
  std::vector<Linked>& all = impl_->dependencies;
  const auto dropped =
      std::erase_if(all, [&](const Linked& each) { return condition(each.dependency); });
  if (dropped == 0) return 0;
  for (Place& place : impl_->places) place.last_dependent = place.last_wait = kNothing;
  for (std::size_t i = 0; i < all.size(); ++i) impl_->link(static_cast<std::uint32_t>(i));
  return dropped;
}

std::size_t Graph::dependency_count() const { return impl_->dependencies.size(); }

// The visitors below pass copies and stop at the dependency that was last at the start, so that a
// visitor may add dependencies.

void Graph::each_dependency(const std::function<void(const Dependency&)>& visit) const {
  const std::size_t count = impl_->dependencies.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Dependency dependency = impl_->dependencies[i].dependency;
    visit(dependency);
  }
}

void Graph::change_dependencies(const std::function<void(Dependency&)>& change) {
  const std::size_t count = impl_->dependencies.size();
  for (std::size_t i = 0; i < count; ++i) {
    Dependency changed = impl_->dependencies[i].dependency;
    change(changed);
    Dependency& kept = impl_->dependencies[i].dependency;
    changed.before = kept.before;
    changed.after = kept.after;
    kept = changed;
  }
}

void Graph::each_dependent(TaskId task, const std::function<void(const Dependency&)>& visit) const {
  each_of_ring(impl_->dependencies, impl_->place(task).last_dependent, &Linked::next_dependent,
               visit);
}

void Graph::each_wait(TaskId task, const std::function<void(const Dependency&)>& visit) const {
  each_of_ring(impl_->dependencies, impl_->place(task).last_wait, &Linked::next_wait, visit);
}

}  // namespace foretrace
