#pragma once

// Declares make_<name>_schedule() for every line of schedules.def: -Wmissing-declarations then
// rejects a schedule without a line, and the linker a line without a schedule. Also declares the
// helpers that the schedules share.

#include "schedule/schedule.h"

namespace foretrace {

#define SCHEDULE(function, name, summary) \
  std::unique_ptr<ScheduleRule> make_##function##_schedule();
#include "schedule/schedules.def"
#undef SCHEDULE

using Order = std::vector<Action>;

inline Action pass(ActionKind kind, std::int64_t stage, std::int64_t micro_batch,
                   std::int64_t pipeline = 0) {
  return {.kind = kind,
          .stage = static_cast<std::int32_t>(stage),
          .micro_batch = static_cast<std::int32_t>(micro_batch),
          .pipeline = static_cast<std::int32_t>(pipeline)};
}

/// A schedule with empty orders.
Schedule empty_schedule(std::string_view name, const ScheduleRule& rule);

/// Returns the order of 1F1B: `ahead` forward passes, then a backward pass after each further one.
Order one_f_one_b_order(std::int64_t stage, std::int64_t ahead, std::int64_t micro_batches);

/// Ends a schedule of one batch. The gradients of a stage are reduced as soon as they are complete,
/// or at the end, late stages first, if not `early`. The updates follow.
void add_updates(Schedule& schedule, bool early = true);

/// Removes the micro-batches that a rule added to reach the number it needs.
void drop_micro_batches(Schedule& schedule, std::int64_t from);

/// Returns the stage of a chunk if the two chunks of each rank form a V: down the ranks, then up
/// again.
inline std::int64_t stage_in_v(std::int64_t rank, std::int64_t chunk, std::int64_t ranks) {
  return chunk == 0 ? rank : 2 * ranks - 1 - rank;
}

}  // namespace foretrace
