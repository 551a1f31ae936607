#pragma once

// Allocates idle nodes to elastic jobs (BFTrainer, Liu et al. 2021, arXiv 2106.12091). A job j on n
// nodes processes O_j(n) samples a second; changing n stops it for some seconds at its old rate.
// The best numbers of nodes for the next `horizon` seconds solve
//
//     max  sum_j  horizon O_j(n_j) - [n_j > C_j] up_j O_j(C_j) - [n_j < C_j] down_j O_j(C_j)
//     n_j = 0 or least_j <= n_j <= most_j,   sum_j n_j <= nodes
//
// Nodes are alike, and any such numbers can be reached without moving a job between nodes, so that
// only the numbers have to be chosen. This is a knapsack with one choice per job, solved exactly in
// O(jobs x nodes x most), or by an integer program with the same objective.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/units.h"
#include "studies/allocate/allocate.h"

namespace foretrace {

inline double in_seconds(Nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

/// Linear interpolation between points in ascending order, starting from (0, 0); constant after the
/// last point.
struct RateCurve {
  std::vector<std::pair<double, double>> points;
  double at(double nodes) const;
};

struct ElasticJob {
  std::string name{};
  std::int64_t least = 1, most = 64;  ///< Nodes.
  double up = 0, down = 0;            ///< Seconds that gaining or losing nodes stops the job.
  RateCurve rates{};                  ///< Samples a second.
  double samples = 0;                 ///< Samples to process in total; 0: no end.
  double value = 0;                   ///< Value of one sample.
  Nanoseconds arrival{0};
  Nanoseconds deadline{0};  ///< 0: none.
};

struct JobState {
  const ElasticJob* job = nullptr;
  std::int64_t nodes = 0;
  double done = 0;  ///< Samples.
};

/// Returns O_j for an objective: throughput (samples), speedup (relative to one node), price (value
/// of samples), deadline (share of the rate that the deadline requires, at most 1), or a formula of
/// kObjectiveNames, evaluated at each number of nodes. Throws Error if the objective is unbounded,
/// or if the job lacks a value it needs.
RateCurve objective_curve(const JobState& state, const std::string& objective, Nanoseconds time);
inline constexpr std::string_view kObjectives[] = {"throughput", "speedup", "deadline", "price"};
/// A formula may use the number of nodes, the samples a second on them and on one node, the job's
/// value and samples, the samples done, and the seconds left to its deadline (0 without one).
inline const std::vector<std::string> kObjectiveNames = {"nodes",   "rate", "one", "value",
                                                         "samples", "done", "left"};

struct AllocationProblem {
  std::vector<JobState> jobs;
  std::vector<RateCurve> curves;  ///< By job, in the unit of the objective.
  std::int64_t nodes = 0;
  double horizon = 120;  ///< Seconds.

  /// Returns the rate of a job on its current nodes; 0 below its least.
  double current_rate(std::size_t j) const;
};

struct NodeShares {
  std::vector<std::int64_t> nodes;  ///< By job.
  double value = 0;
};

/// Among equally good solutions, returns the one that changes least.
NodeShares allocate_by_knapsack(const AllocationProblem& problem);
/// Solves with glpk. Throws Error in a build without glpk, or if it finds no optimum within 10
/// seconds.
NodeShares allocate_by_milp(const AllocationProblem& problem);
/// Gives each job the same number of nodes, within its limits; the remainder goes to the first
/// jobs.
NodeShares allocate_equally(const AllocationProblem& problem);

using Allocate = NodeShares (*)(const AllocationProblem& problem);

/// Nodes that become idle or are taken back.
struct NodeEvent {
  Nanoseconds time{0};
  std::vector<std::int32_t> joined{}, left{};
};

struct NodeLog {
  std::int32_t nodes = 0;
  std::vector<NodeEvent> events;  ///< In ascending order of time.
};

/// Reads CSV with the columns "time_s,joined,left", where node names are separated by blanks, or
/// the table of snapshots that BFTrainer publishes (import/data_frame/data_frame.h). Throws Error
/// with the line or row, TraceError if it is another pickle.
NodeLog read_node_events(const std::string& path);
/// Reads the output of `sacct -P -o JobID,Start,End,NodeList`; other columns are ignored and steps
/// of jobs are skipped. Every node named is idle while no job runs on it. Throws Error with both
/// lines if two jobs overlap on a node.
NodeLog read_sacct(const std::string& path);
/// Reads the Standard Workload Format. Jobs get the lowest free nodes. Throws Error with the lines
/// if they need more nodes than there are.
NodeLog read_swf(const std::string& path);

struct AllocationPolicy {
  Allocate allocate = allocate_by_knapsack;
  std::string objective = "throughput";
  double horizon = 120;      ///< Seconds.
  std::size_t at_once = 10;  ///< Jobs that may run at once; others wait in order.
};

/// Replays a log. At each event it counts the work since the last event, takes nodes away (which
/// stops each affected job once), removes finished jobs, adds new nodes, and decides again.
AllocationReplay replay_allocation(const std::vector<ElasticJob>& jobs, const NodeLog& log,
                                   const AllocationPolicy& policy);

}  // namespace foretrace
