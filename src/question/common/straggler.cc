#include "question/common/straggler.h"

#include <fmt/core.h>
#include <vector>

#include "analysis/doubt/trust.h"
#include "job/chosen_rank.h"
#include "job/step_cost.h"

namespace foretrace {
namespace {

/// `open`: waits for other ranks that are not open time of the inference.
RankTimes times_of(const Rank& rank, const std::vector<OpenTime>& open) {
  const Inference& inference = rank.inference;
  const Nanoseconds step = step_times(inference.graph, inference.recorded).step_time;
  return {rank.number, step, step - wait_for_ranks(inference, open, step)};
}

/// Describes the longest piece of host work; empty if it is not a large part of a step.
std::string longest_piece(const Graph& graph, Nanoseconds step) {
  const MeasuredSteps steps = measured_steps(graph);
  TaskId longest = kNoTask;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (runs_on_device(task.kind) || !steps.has(task)) continue;
    if (longest == kNoTask || task.duration > graph.task(longest).duration) longest = TaskId{i};
  }
  if (longest == kNoTask || 4 * graph.task(longest).duration < step) return {};
  return fmt::format(", {} of it in one piece of host work, \"{}\"",
                     to_text(graph.task(longest).duration), graph.name(longest));
}

std::vector<RankTimes> times_of_ranks(const JobRanks& job) {
  std::vector<RankTimes> all;
  for (std::size_t i = 0; i < job.ranks.size(); ++i)
    all.push_back(times_of(job.ranks[i], open_waits(job, i)));
  return all;
}

std::optional<LateRank> late_rank(const JobRanks& job, const std::vector<RankTimes>& all) {
  const auto found = straggler_among(all);
  if (!found) return {};
  const RankTimes& rank = all[found->rank];
  const Graph& graph = job.ranks[found->rank].inference.graph;
  return LateRank{found->rank, rank.rank, found->others_wait,
                  fmt::format("it works {} a step{}; the others work {} and wait {} for it",
                              to_text(rank.work), longest_piece(graph, rank.step),
                              to_text(found->others_work), to_text(found->others_wait))};
}

}  // namespace

std::optional<LateRank> late_rank(const JobRanks& job) {
  if (job.ranks.size() == 1) return {};
  return late_rank(job, times_of_ranks(job));
}

RankChoice rank_to_advise(const JobRanks& job, Notes& notes) {
  if (job.ranks.size() == 1) return {};
  const std::vector<RankTimes> all = times_of_ranks(job);
  SlowestRank slowest;
  std::string listed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    slowest.consider(i, all[i].step);
    listed +=
        fmt::format("{}rank {}: {}", listed.empty() ? "" : ", ", all[i].rank, to_text(all[i].step));
  }
  RankChoice choice{.rank = slowest.rank(), .straggler = {}};
  if (const auto found = late_rank(job, all)) {
    choice.rank = found->rank;
    choice.straggler = fmt::format(
        "rank {} is the straggler: {} (what the job would take without that: "
        "foretrace predict TRACE --with straggler:remove=true)",
        found->number, found->text);
  }
  const std::int32_t shown = all[slowest.rank()].rank;
  choice.reason =
      choice.rank == slowest.rank()
          ? fmt::format("{}, the slowest of {}, which predict shows too", shown, all.size())
          : fmt::format(
                "{}, the straggler of {}; predict shows the slowest, rank {}, whose step "
                "and communication hold the wait for it",
                all[choice.rank].rank, all.size(), shown);
  notes.add(Severity::info,
            fmt::format("the advice is for the {} {}{}",
                        choice.straggler.empty() ? "slowest rank," : "straggler, rank",
                        all[choice.rank].rank,
                        job.is_joined() ? "; the others change with it, and it waits for them"
                                        : ", alone; others may then bound the job"),
            listed);
  return choice;
}

}  // namespace foretrace
