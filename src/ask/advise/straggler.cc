#include "ask/advise/straggler.h"

#include <vector>

#include "ask/job/chosen_rank.h"
#include "ask/job/step_cost.h"
#include "ask/predict/trust.h"

namespace foretrace {
namespace {

RankTimes times_of(const Rank& rank) {
  const Inference& inference = rank.inference;
  const Nanoseconds step = step_times(inference.graph, inference.recorded).step_time;
  const OpenStepTime open = open_step_time(inference, inference.graph, step);
  return {rank.number, step, step - open.other_ranks};
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

std::string straggler_text(const RankTimes& rank, const Straggler& found, const Graph& graph) {
  return "rank " + std::to_string(rank.rank) + " is the straggler: it works " + to_text(rank.own) +
         " a step" + longest_piece(graph, rank.step) + "; the others work " +
         to_text(found.others_own) + " and wait " + to_text(found.others_wait) +
         " for it (what the job would take without that: foretrace predict --with "
         "straggler:remove=true)";
}

}  // namespace

RankChoice rank_to_advise(const Job& job, Notes& notes) {
  if (job.ranks.size() == 1) return {};
  std::vector<RankTimes> all;
  Slowest slowest;
  std::string listed;
  for (const Rank& rank : job.ranks) {
    all.push_back(times_of(rank));
    slowest.consider(all.size() - 1, all.back().step);
    listed += (listed.empty() ? "rank " : ", rank ") + std::to_string(rank.number) + ": " +
              to_text(all.back().step);
  }
  RankChoice choice{.rank = slowest.rank(), .straggler = {}};
  if (const auto found = straggler_among(all)) {
    choice.rank = found->rank;
    choice.straggler =
        straggler_text(all[found->rank], *found, job.ranks[found->rank].inference.graph);
  }
  notes.add(Severity::info,
            std::string("the advice is for the ") +
                (choice.straggler.empty() ? "slowest rank, " : "straggler, rank ") +
                std::to_string(all[choice.rank].rank) +
                (job.is_joined() ? "; the others change with it, and it waits for them"
                                 : ", alone; others may then bound the job"),
            listed);
  return choice;
}

}  // namespace foretrace
