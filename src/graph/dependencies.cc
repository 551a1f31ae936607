// Dependencies, and the lists of them that each task keeps.

#include "foretrace/error.h"
#include "foretrace/graph.h"

namespace foretrace {
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
