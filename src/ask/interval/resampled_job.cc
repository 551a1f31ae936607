#include "ask/interval/resampled_job.h"

#include <algorithm>

#include "base/threads.h"

namespace foretrace {
namespace {

/// Time that each task waited for other ranks, by recorded rank and task.
std::vector<std::vector<Nanoseconds>> waits_of_steps(const JobRanks& job) {
  std::vector<std::vector<Nanoseconds>> waits;
  for (const Rank& rank : job.ranks) waits.emplace_back(rank.inference.graph.task_count(), 0ns);
  for (const MatchedCollective& collective : job.join.collectives) {
    for (const CollectiveMember& one : collective.members) {
      if (one.rank < waits.size()) waits[one.rank][index(one.task)] = one.skew;
    }
  }
  return waits;
}

}  // namespace

ResampledJob::ResampledJob(const JobRanks& job, const JointReplay& replayed, std::size_t shown,
                           const std::function<const Graph&(std::size_t)>& graph_of) {
  if (!job.is_joined() || !replayed.rows || replayed.rows->task_count() > kMostTasksResampled)
    return;
  waits_ = waits_of_steps(job);
  variations_.resize(job.ranks.size());
  const auto vary = [&](std::size_t i) {
    if (!variations_[i]) variations_[i].emplace(job.ranks[i].inference, waits_[i]);
  };
  const std::size_t first = job.world[shown].recorded;
  vary(first);
  if (variations_[first]->donors().size() < 2) return;
  on_all_cores(job.ranks.size(), vary);
  for (const std::uint32_t rank : replayed.kept) {
    const std::uint32_t recorded = job.world[rank].recorded;
    ranks_.push_back({*variations_[recorded], job.ranks[recorded].inference.graph, graph_of(rank),
                      waits_[recorded]});
  }
  const auto place = std::find(replayed.kept.begin(), replayed.kept.end(), shown);
  const auto number = static_cast<std::size_t>(place - replayed.kept.begin());
  if (common_donors(ranks_, number).size() < 2) return;
  joint_ranks_.emplace(JointRanks{ranks_, number, *replayed.rows});
}

}  // namespace foretrace
