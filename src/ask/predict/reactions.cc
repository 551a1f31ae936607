#include "ask/predict/reactions.h"

#include <utility>

#include "ask/predict/lever.h"
#include "base/threads.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

Nanoseconds step_time_if_faster(const Graph& graph, const Lever& lever, double factor) {
  Graph faster = graph.clone();
  pull(faster, lever, factor);
  return replayed_step_time(faster);
}

}  // namespace

std::vector<Reaction> reactions_of(const Graph& graph, Nanoseconds step_time) {
  std::vector<Lever> levers;
  for (Lever& lever : speed_levers(graph)) {
    if (lever.there && lever.graded()) levers.push_back(std::move(lever));
  }
  std::vector<Reaction> reactions(levers.size());
  on_all_cores(2 * levers.size(), [&](std::size_t i) {
    const Lever& lever = levers[i / 2];
    Reaction& reaction = reactions[i / 2];
    if (i % 2 == 0) {
      reaction.name = lever.name, reaction.what = lever.title;
      reaction.work = work_of(graph, lever);
      reaction.step_time = step_time;
      reaction.by_tenth = step_time_if_faster(graph, lever, 0.9);
    } else {
      reaction.by_half = step_time_if_faster(graph, lever, 0.5);
    }
  });
  return reactions;
}

}  // namespace foretrace
