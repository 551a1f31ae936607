#pragma once

// `foretrace plan allocate`: which elastic jobs get idle nodes, now or over a whole log.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

/// A file of jobs is JSON:
///
///     {"jobs": [{"name": "a", "count": 10, "arrival": "0s", "every": "36s", "nodes": 4,
///                "least": 1, "most": 64, "up": "18s", "down": "12s", "samples": 1.3e8,
///                "value": 0.001, "deadline": "10h", "rates": {"1": 2831, "8": 20379.2}}]}
///
/// `rates` are samples a second by nodes. Instead of them "model", "machine" and "global_batch"
/// name a described job, whose rates are those of its fastest layouts.
struct AllocateQuestion {
  std::string jobs;                      ///< Path of a file of jobs.
  std::optional<std::int64_t> nodes{};   ///< Nodes that are idle, for one decision.
  std::string events{}, sacct{}, swf{};  ///< Or one of these logs to replay.
  std::string objective = "throughput";  ///< throughput, speedup, deadline, price
  std::string solver = "knapsack";       ///< knapsack, milp, equal
  Nanoseconds ahead{120'000'000'000};    ///< How far a decision looks ahead.
  std::size_t at_once = 10;              ///< Jobs that may run at once in a replay.
};

struct AllocatedJob {
  std::string name{};
  std::int64_t before = 0, nodes = 0;  ///< Nodes before and after the decision.
  double rate = 0;                     ///< Samples a second on these nodes.
};

struct AllocationReplay {
  Nanoseconds makespan{0};         ///< Until the last job is done, or the log ends.
  std::size_t events = 0;          ///< Changes of the idle nodes that were handled.
  std::size_t done = 0, left = 0;  ///< Jobs that were done, and jobs that were not.
  double mean_nodes = 0;           ///< Idle nodes, averaged over time.
  double samples = 0;
  double rescaled = 0, preempted = 0;  ///< Samples lost to rescaling, and to preempted nodes.
  /// Samples, relative to those of as many jobs as ran on average that share `mean_nodes` equally
  /// all the time.
  double efficiency = 0;

  double per_node_second() const;  ///< Samples per node and second.
};

struct AllocationReport {
  std::string objective, solver;
  Nanoseconds ahead{0};  ///< How far a decision looks ahead.
  std::int64_t nodes = 0;
  std::vector<AllocatedJob> jobs{};
  double value = 0;  ///< The objective, where one decision was asked for.
  std::optional<AllocationReplay> replay{};
  /// The replay with the lower and with the upper ends of predicted rates.
  std::optional<AllocationReplay> slow{}, fast{};
  std::vector<std::string> assumptions{};
  Notes notes{};
};

class Document;
/// For people, in every form.
Document document_of(const AllocationReport& report);
/// The object with schema "foretrace.allocation/1".
nlohmann::json to_json(const AllocationReport& report);
/// One row for each job of a decision.
void write_csv(const AllocationReport& report, std::ostream& out);

/// Throws Error if the question cannot be answered.
AllocationReport allocate(const AllocateQuestion& question);

}  // namespace foretrace
