#include <algorithm>
#include <utility>

#include "studies/allocate/assign.h"

namespace foretrace {
namespace {

/// A running job and its progress.
struct Running {
  const ElasticJob* job;
  std::vector<std::int32_t> nodes{};
  double rate = 0;  ///< Samples a second.
  double owed = 0;  ///< Samples lost to the last decision.
  double done = 0;
};

class AllocationReplayer {
 public:
  AllocationReplayer(const std::vector<ElasticJob>& jobs, const NodeLog& log,
                     const AllocationPolicy& policy)
      : log_(log), policy_(policy), is_idle_(static_cast<std::size_t>(log.nodes), 0) {
    for (const ElasticJob& job : jobs) waiting_.push_back(&job);
    std::ranges::stable_sort(waiting_, {}, &ElasticJob::arrival);
  }

  AllocationReplay run() {
    for (const NodeEvent& event : log_.events) {
      advance(event.time);
      ++replay_.events;
      take(event.left);
      std::erase_if(running_, [&](const Running& one) { return is_done(one); });
      for (const std::int32_t node : event.joined) idle_ += !std::exchange(idle_at(node), 1);
      admit();
      if (running_.empty() && next_ == waiting_.size()) break;
      decide();
    }
    return result();
  }

 private:
  char& idle_at(std::int32_t node) { return is_idle_[static_cast<std::size_t>(node)]; }

  void advance(Nanoseconds time) {
    if (replay_.events == 0) start_ = time_ = time;
    const double dt = in_seconds(time - time_);
    node_seconds_ += dt * static_cast<double>(idle_);
    share_seconds_ += dt * static_cast<double>(running_.size());
    for (Running& one : running_) {
      one.done += dt * one.rate - one.owed;
      replay_.samples += dt * one.rate - one.owed;
      replay_.rescaled += one.owed;
      one.owed = 0;
    }
    time_ = time;
  }

  /// A job that loses several nodes at once stops only once.
  void take(const std::vector<std::int32_t>& nodes) {
    for (const std::int32_t node : nodes) idle_ -= std::exchange(idle_at(node), 0);
    for (Running& one : running_) {
      const std::size_t lost =
          std::erase_if(one.nodes, [&](std::int32_t node) { return idle_at(node) == 0; });
      if (lost == 0) continue;
      const double cost = one.job->down * one.rate;
      one.done -= cost, replay_.samples -= cost, replay_.preempted += cost;
    }
  }

  /// Work beyond the job's end is not counted; the end is noticed at the next event.
  bool is_done(const Running& one) {
    const bool done = one.job->samples > 0 && one.done >= one.job->samples;
    if (done) ++replay_.done, replay_.samples -= one.done - one.job->samples;
    return done;
  }

  void admit() {
    while (running_.size() < policy_.at_once && next_ < waiting_.size() &&
           waiting_[next_]->arrival <= time_ - start_)
      running_.push_back({waiting_[next_++]});
  }

  void decide() {
    AllocationProblem problem;
    problem.nodes = idle_, problem.horizon = policy_.horizon;
    for (const Running& one : running_) {
      problem.jobs.push_back({one.job, static_cast<std::int64_t>(one.nodes.size()), one.done});
      problem.curves.push_back(
          objective_curve(problem.jobs.back(), policy_.objective, time_ - start_));
    }
    const NodeShares answer = policy_.allocate(problem);
    std::vector<char> is_taken = is_idle_;  // Idle nodes that are still to be assigned.
    for (std::size_t j = 0; j < running_.size(); ++j) {
      Running& one = running_[j];
      const auto wanted = static_cast<std::size_t>(answer.nodes[j]);
      const double old = rate_of(one);
      if (wanted != one.nodes.size())
        one.owed = old * (wanted > one.nodes.size() ? one.job->up : one.job->down);
      if (wanted < one.nodes.size()) one.nodes.resize(wanted);
      for (const std::int32_t node : one.nodes) is_taken[static_cast<std::size_t>(node)] = 0;
    }
    std::size_t free = 0;
    for (std::size_t j = 0; j < running_.size(); ++j) {
      Running& one = running_[j];
      for (; one.nodes.size() < static_cast<std::size_t>(answer.nodes[j]); ++free) {
        if (is_taken[free] != 0) one.nodes.push_back(static_cast<std::int32_t>(free));
      }
      one.rate = rate_of(one);
    }
  }

  static double rate_of(const Running& one) {
    const auto nodes = static_cast<std::int64_t>(one.nodes.size());
    return nodes >= one.job->least ? one.job->rates.at(static_cast<double>(nodes)) : 0;
  }

  AllocationReplay result() {
    const double time = in_seconds(time_ - start_);
    replay_.makespan = time_ - start_;
    replay_.left = running_.size() + waiting_.size() - next_;
    if (time <= 0) return replay_;
    replay_.mean_nodes = node_seconds_ / time;
    // Baseline: the average number of running jobs, each with an equal share of the nodes.
    const double jobs = share_seconds_ / time;
    if (jobs > 0 && !waiting_.empty()) {
      double rate = 0;
      for (const ElasticJob* job : waiting_) rate += job->rates.at(replay_.mean_nodes / jobs);
      rate *= jobs / static_cast<double>(waiting_.size());
      if (rate > 0) replay_.efficiency = replay_.samples / (rate * time);
    }
    return replay_;
  }

  const NodeLog& log_;
  const AllocationPolicy& policy_;
  std::vector<char> is_idle_;  ///< By node.
  std::int64_t idle_ = 0;
  /// In order of arrival; jobs before `next_` were admitted.
  std::vector<const ElasticJob*> waiting_;
  std::size_t next_ = 0;
  std::vector<Running> running_;
  Nanoseconds start_{0}, time_{0};
  double node_seconds_ = 0, share_seconds_ = 0;
  AllocationReplay replay_;
};

}  // namespace

double AllocationReplay::per_node_second() const {
  const double seconds = static_cast<double>(makespan.count()) * 1e-9;
  return mean_nodes > 0 && seconds > 0 ? samples / (mean_nodes * seconds) : 0;
}

AllocationReplay replay_allocation(const std::vector<ElasticJob>& jobs, const NodeLog& log,
                                   const AllocationPolicy& policy) {
  return AllocationReplayer(jobs, log, policy).run();
}

}  // namespace foretrace
