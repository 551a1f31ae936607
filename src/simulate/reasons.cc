#include "simulate/reasons.h"

#include "simulate/waits.h"

namespace foretrace {

std::vector<StartReason> find_reasons(const Graph& graph, const Timeline& timeline,
                                      std::span<const OvertakenTask> overtaken) {
  std::vector<StartReason> reasons(graph.task_count());
  const auto offer = [&](TaskId after, Nanoseconds ends, const StartReason& reason) {
    const Nanoseconds start = timeline.start[index(after)];
    if (start != ends || start == 0ns) return;
    StartReason& kept = reasons[index(after)];
    if (kept.before == kNoTask || reason.before < kept.before) kept = reason;
  };
  const auto offer_wait = [&](const Wait& wait, WaitReason why) {
    const Nanoseconds start = timeline.start[wait.before], finish = timeline.finish[wait.before];
    const Nanoseconds anchor = wait.from_start ? start : finish - wait.tail.of(finish - start);
    const Nanoseconds lag(wait.lag);
    offer(TaskId{wait.after}, anchor + lag, {TaskId{wait.before}, why, lag});
  };
  each_wait_in_line(graph, [&](const Wait& wait) { offer_wait(wait, Rule::in_line); });
  const std::vector<char> lanes = lanes_in_line(graph);
  graph.each_dependency([&](const Dependency& dependency) {
    offer_wait(wait_of(graph, lanes, dependency), dependency.why);
  });
  for (const auto& [task, overtaker] : overtaken)
    reasons[index(task)] = {overtaker, Rule::in_line, 0ns};
  return reasons;
}

}  // namespace foretrace
