#pragma once

// The answer of `foretrace plan allocate`: which elastic jobs get the idle nodes, now or over a
// whole log.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

struct AllocatedJob {
  std::string name{};
  std::int64_t before = 0, nodes = 0;
  double rate = 0;  ///< Samples a second on these nodes.
};

struct AllocationReplay {
  Nanoseconds makespan{0};         ///< Until the last job is done, or the log ends.
  std::size_t events = 0;          ///< Changes of the nodes that were handled.
  std::size_t done = 0, left = 0;  ///< Jobs.
  double mean_nodes = 0;           ///< Idle nodes, averaged over time.
  double samples = 0;
  double rescaled = 0, preempted = 0;  ///< Samples lost to rescaling, and to nodes taken away.
  /// Samples over those of as many jobs that share `mean_nodes` equally and forever.
  double efficiency = 0;

  double per_node_second() const;  ///< Samples.
};

struct AllocationReport {
  std::string objective, solver;
  Nanoseconds ahead{0};  ///< How far a decision looks ahead.
  std::int64_t nodes = 0;
  std::vector<AllocatedJob> jobs{};
  double value = 0;  ///< The objective, where one decision was asked for.
  std::optional<AllocationReplay> replay{};
  /// With the ends of the intervals of predicted rates.
  std::optional<AllocationReplay> slow{}, fast{};
  std::vector<std::string> assumptions{};
  Notes notes{};
};

}  // namespace foretrace
