#pragma once

// The layouts on several GPUs that a job recorded on one GPU can have.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/ask/plan.h"

namespace foretrace {

struct RecordedLayout {
  std::int64_t stages = 1, copies = 1;
  std::int64_t micro_batches = 1;  ///< Micro-batches of each copy; each is a recorded batch.
  std::string schedule = "1f1b";
  std::int64_t zero = 0;
  bool recomputes = false;

  std::string text() const;  ///< "pp=4,dp=2,micro_batches=8,schedule=gpipe"
  /// The steps for `predict --with`.
  std::vector<std::string> steps(const PlanQuestion& question) const;
};

/// Number of recorded batches in a step: as asked for, or one for each GPU of the largest count.
std::int64_t recorded_batches(const PlanQuestion& question);

/// Returns all layouts, with plain data parallelism first. Throws Error if no layout divides the
/// batch.
std::vector<RecordedLayout> recorded_layouts(const PlanQuestion& question, std::int64_t gpus);

}  // namespace foretrace
