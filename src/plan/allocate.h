#pragma once

// Idle nodes for elastic jobs (BFTrainer, Liu et al. 2021, arXiv 2106.12091). A job j that runs on
// n nodes makes O_j(n) samples a second; a change of n stops it for some seconds at its old rate.
// The best numbers of nodes for the next `ahead` seconds:
//
//     max  sum_j  ahead O_j(n_j) - [n_j > C_j] up_j O_j(C_j) - [n_j < C_j] down_j O_j(C_j)
//     n_j = 0 or least_j <= n_j <= most_j,   sum_j n_j <= nodes
//
// Nodes are alike, and any such numbers can be had without moving a job between nodes, so that the
// numbers are all there is to decide: a knapsack with one choice for each job, exact in
// O(jobs x nodes x most); or an integer program, with the same objective.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/answer/allocation.h"
#include "foretrace/units.h"

namespace foretrace {

inline double in_seconds(Nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

/// Straight lines between points in ascending order, from (0, 0), level behind the last.
struct RateCurve {
  std::vector<std::pair<double, double>> points;
  double at(double nodes) const;
};

struct ElasticJob {
  std::string name{};
  std::int64_t least = 1, most = 64;  ///< Nodes.
  double up = 0, down = 0;            ///< Seconds that a change stops it.
  RateCurve rates{};                  ///< Samples a second.
  double samples = 0;                 ///< Samples it has to process; 0: no end.
  double value = 0;                   ///< Of a sample.
  Nanoseconds arrival{0};
  Nanoseconds deadline{0};  ///< 0: none.
};

struct JobNow {
  const ElasticJob* job = nullptr;
  std::int64_t nodes = 0;
  double done = 0;  ///< Samples.
};

/// O_j by an objective: throughput (samples), speedup (over one node), price (value of samples),
/// deadline (share of the rate that the deadline needs, at most 1), or by a formula of
/// kObjectiveNames at each number of nodes. Throws Error where it is not bounded, or lacks what it
/// needs.
RateCurve objective_curve(const JobNow& now, const std::string& objective, Nanoseconds time);
inline constexpr std::string_view kObjectives[] = {"throughput", "speedup", "deadline", "price"};
/// A formula may mention the nodes, the samples a second on them and on one node, the job's value
/// and samples, those done, and the seconds to its deadline (0 without one).
inline const std::vector<std::string> kObjectiveNames = {"nodes",   "rate", "one", "value",
                                                         "samples", "done", "left"};

struct AllocationProblem {
  std::vector<JobNow> jobs;
  std::vector<RateCurve> curves;  ///< By job, in the unit of the objective.
  std::int64_t nodes = 0;
  double ahead = 120;  ///< Seconds.

  /// The rate of a job on the nodes that it has; 0 below its least.
  double current_rate(std::size_t j) const;
};

struct NodeShares {
  std::vector<std::int64_t> nodes;  ///< By job.
  double value = 0;
};

/// Among equal ones, the one that changes least.
NodeShares allocate_by_knapsack(const AllocationProblem& problem);
/// By glpk. Throws Error in a build without it, or where it finds no optimum within 10 seconds.
NodeShares allocate_by_milp(const AllocationProblem& problem);
/// Each job has as many nodes, within its limits; what is left goes to the first.
NodeShares allocate_equally(const AllocationProblem& problem);

using Allocate = NodeShares (*)(const AllocationProblem& problem);

/// Nodes that become idle or are taken back.
struct NodeEvent {
  Nanoseconds time{0};
  std::vector<std::int32_t> joined{}, left{};
};

struct NodeLog {
  std::int32_t nodes = 0;
  std::vector<NodeEvent> events;  ///< Ascending.
};

/// "time_s,joined,left": names of nodes, separated by blanks. Throws Error with the line.
NodeLog read_node_events(const std::string& path);
/// `sacct -P -o JobID,Start,End,NodeList`, with other columns or not; steps of jobs are skipped.
/// All nodes that are named are idle where no job runs. Throws Error with both lines where two jobs
/// overlap on a node.
NodeLog read_sacct(const std::string& path);
/// Standard Workload Format: jobs get the lowest nodes that are free. Throws Error with the lines
/// where they need more than there are.
NodeLog read_swf(const std::string& path);

struct AllocationPolicy {
  Allocate allocate = allocate_by_knapsack;
  std::string objective = "throughput";
  double ahead = 120;        ///< Seconds.
  std::size_t at_once = 10;  ///< Jobs that may run; others wait in their order.
};

/// At each event: what was done since the last; nodes that are taken, which stop their jobs once;
/// jobs that are done; new nodes; a decision.
AllocationReplay replay_allocation(const std::vector<ElasticJob>& jobs, const NodeLog& log,
                                   const AllocationPolicy& policy);

}  // namespace foretrace
