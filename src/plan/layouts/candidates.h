#pragma once

// The layouts of a space, each stored in a few bytes, because a space may have millions.

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace foretrace {

struct Candidate {
  std::int32_t tensor = 1, pipeline = 1, data = 1, context = 1, expert = 1;
  std::int32_t virtual_stages = 1, micro_batch = 1;
  std::int8_t schedule = -1;  ///< In schedules(); -1 for one stage, which has that of Layout.
  std::int8_t recompute = 0, zero = 0;
  bool sequence_parallel = false, embedding_is_layer = false;

  std::int64_t devices() const { return std::int64_t{1} * tensor * pipeline * data * context; }
};

/// A layout with the searched settings of a candidate; others are those of `base`, or their
/// defaults if the candidate cannot have them.
Layout layout_of(const Candidate& candidate, const Layout& base);

/// Returns the candidates in the order of all_layouts(). Throws Error if there are none.
std::vector<Candidate> candidates_of(const PlanSpace& space);

}  // namespace foretrace
