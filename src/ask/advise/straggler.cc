#include "ask/advise/straggler.h"

#include <algorithm>

#include "ask/job/step_cost.h"
#include "ask/predict/trust.h"

namespace foretrace {
namespace {

/// A straggler works so many times as long as ranks do in the median, and the others wait for at
/// least this share of their step.
constexpr double kClearlyLonger = 1.1;
constexpr double kClearlyWaiting = 0.1;

struct RankTimes {
  std::int32_t rank = 0;
  Nanoseconds step{0};
  Nanoseconds own{0};  ///< The step without waits for other ranks.
};

RankTimes times_of(const Inference& inference, std::int32_t rank) {
  const Nanoseconds step = step_times(inference.graph, inference.recorded).step_time;
  const OpenStepTime open = open_step_time(inference, inference.graph, step);
  return {rank, step, step - open.other_ranks};
}

Nanoseconds median_of(std::vector<Nanoseconds> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// The longest host work of one piece; empty if it is not a large part of a step.
std::string longest_piece(const Graph& graph, Nanoseconds step) {
  const MeasuredSteps steps = measured_steps(graph);
  TaskId longest = kNoTask;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (runs_on_device(task.kind) || !steps.has(task)) continue;
    if (longest == kNoTask || task.duration > graph.task(longest).duration) longest = TaskId{i};
  }
  if (longest == kNoTask || 4 * graph.task(longest).duration < step) return {};
  return ", " + to_text(graph.task(longest).duration) + " of it in one piece of host work, \"" +
         std::string(graph.name(longest)) + "\"";
}

std::string straggler_text(const std::vector<RankTimes>& all, std::size_t slow,
                           const Inference& inference) {
  std::vector<Nanoseconds> own, waits;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == slow) continue;
    own.push_back(all[i].own);
    waits.push_back(all[i].step - all[i].own);
  }
  const Nanoseconds other = median_of(own), wait = median_of(waits);
  if (all[slow].own < scaled(other, kClearlyLonger) ||
      wait < scaled(all[slow].step, kClearlyWaiting))
    return {};
  return "rank " + std::to_string(all[slow].rank) + " is the straggler: it works " +
         to_text(all[slow].own) + " a step" + longest_piece(inference.graph, all[slow].step) +
         "; the others work " + to_text(other) + " and wait " + to_text(wait) + " for it";
}

}  // namespace

RankChoice rank_to_advise(const std::vector<Inference>& ranks, const std::vector<Trace>& traces,
                          Notes& notes) {
  if (ranks.size() == 1) return {};
  std::vector<RankTimes> all;
  std::string listed;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    all.push_back(times_of(ranks[i], traces[i].rank));
    listed += (listed.empty() ? "rank " : ", rank ") + std::to_string(traces[i].rank) + ": " +
              to_text(all[i].step);
  }
  const auto by_own = [](const RankTimes& a, const RankTimes& b) { return a.own < b.own; };
  const auto by_step = [](const RankTimes& a, const RankTimes& b) { return a.step < b.step; };
  RankChoice choice;
  choice.rank =
      static_cast<std::size_t>(std::max_element(all.begin(), all.end(), by_own) - all.begin());
  choice.straggler = straggler_text(all, choice.rank, ranks[choice.rank]);
  if (choice.straggler.empty())
    choice.rank =
        static_cast<std::size_t>(std::max_element(all.begin(), all.end(), by_step) - all.begin());
  notes.add(Severity::info,
            std::string("the advice is for the ") +
                (choice.straggler.empty() ? "slowest rank, " : "straggler, rank ") +
                std::to_string(all[choice.rank].rank) + ", alone; others may then bound the job",
            listed);
  return choice;
}

}  // namespace foretrace
