#include "foretrace/simulate.h"

#include <algorithm>
#include <span>
#include <vector>

#include "foretrace/timeline.h"
#include "simulate/clocked.h"
#include "simulate/cycle.h"
#include "simulate/waits.h"

namespace foretrace {
namespace {

/// Finds what each task of a replayed graph waited for last. If several waits end at the same time,
/// the wait for the task with the smallest id counts.
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

/// The replay if all lanes are FIFO, which needs no clock. Kahn's algorithm over the graph as it is
/// takes less time than making its rows. A finished task moves the starts of the tasks that wait
/// for it.
class FifoReplay {
 public:
  explicit FifoReplay(const Graph& graph) : graph_(graph), in_line_(lanes_in_line(graph)) {}

  Timeline replay() {
    count_waits();
    std::size_t done = 0;
    while (!ready_.empty()) {
      std::uint32_t task = ready_.back();
      ready_.pop_back();
      for (; task != index(kNoTask); ++done) task = finish(task);
    }
    if (done < graph_.task_count()) throw_stuck(graph_);
    return std::move(timeline_);
  }

 private:
  void count_waits() {
    const auto count = static_cast<std::uint32_t>(graph_.task_count());
    timeline_.start.assign(count, 0ns);
    timeline_.finish.resize(count);
    waits_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i)
      waits_[i] = graph_.previous(TaskId{i}) == kNoTask ? 0 : 1;
    graph_.each_dependency([&](const Dependency& wait) { ++waits_[index(wait.after)]; });
    for (std::uint32_t i = count; i-- > 0;) {
      if (waits_[i] == 0) ready_.push_back(i);
    }
  }

  /// Returns the next task in line if it is ready, otherwise kNoTask. Lines are followed as far as
  /// possible, because their tasks lie close together in memory.
  std::uint32_t finish(std::uint32_t number) {
    const TaskId task{number};
    const Nanoseconds duration = graph_.removed(task) ? 0ns : graph_.task(task).duration;
    const Nanoseconds start = timeline_.start[number], finish = start + duration;
    timeline_.finish[number] = finish;
    timeline_.length = std::max(timeline_.length, finish);
    graph_.each_dependent(task, [&](const Dependency& dependency) {
      const Wait wait = wait_of(graph_, in_line_, dependency);
      const Nanoseconds from = wait.from_start ? start : finish;
      if (release(wait.after, from - wait.tail.of(duration) + Nanoseconds(wait.lag)))
        ready_.push_back(wait.after);
    });
    const TaskId next = graph_.next(task);
    if (next == kNoTask) return index(kNoTask);
    const Task& behind = graph_.task(next);
    return release(index(next), finish - behind.tail.of(duration) + behind.gap) ? index(next)
                                                                                : index(kNoTask);
  }

  bool release(std::uint32_t task, Nanoseconds earliest) {
    timeline_.start[task] = std::max(timeline_.start[task], earliest);
    return --waits_[task] == 0;
  }

  const Graph& graph_;
  std::vector<char> in_line_;
  std::vector<std::uint32_t> waits_;  ///< By task: number of waits that are not over.
  std::vector<std::uint32_t> ready_;
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Graph& graph, const SimulateOptions& options) {
  std::vector<OvertakenTask> overtaken;
  const bool in_line = lane_not_in_line(graph) == kNoLane;
  Timeline timeline = in_line ? FifoReplay(graph).replay() : replay_clocked(graph, overtaken);
  if (options.reasons) timeline.reasons = find_reasons(graph, timeline, overtaken);
  if (options.memory) timeline.memory = memory_curves(graph, timeline);
  return timeline;
}

Nanoseconds replayed_step_time(const Graph& graph) {
  return step_times(graph, simulate(graph, {.reasons = false, .memory = false})).step_time;
}

}  // namespace foretrace
