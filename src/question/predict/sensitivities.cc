#include "question/predict/sensitivities.h"

#include <utility>

#include "analysis/place/work_group.h"
#include "base/threads.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

Nanoseconds step_time_if_faster(const Graph& graph, const WorkGroup& group, double factor) {
  Graph faster = graph.clone();
  scale_work(faster, group, factor);
  return replayed_step_time(faster);
}

}  // namespace

std::vector<Sensitivity> sensitivities_of(const Graph& graph, Nanoseconds step_time) {
  std::vector<WorkGroup> groups;
  for (WorkGroup& group : named_groups(graph)) {
    if (group.has_work && group.graded()) groups.push_back(std::move(group));
  }
  std::vector<Sensitivity> sensitivities(groups.size());
  on_all_cores(2 * groups.size(), [&](std::size_t i) {
    const WorkGroup& group = groups[i / 2];
    Sensitivity& sensitivity = sensitivities[i / 2];
    if (i % 2 == 0) {
      sensitivity.name = group.name, sensitivity.title = group.title;
      sensitivity.work = work_of(graph, group);
      sensitivity.step_time = step_time;
      sensitivity.by_tenth = step_time_if_faster(graph, group, 0.9);
    } else {
      sensitivity.by_half = step_time_if_faster(graph, group, 0.5);
    }
  });
  return sensitivities;
}

}  // namespace foretrace
