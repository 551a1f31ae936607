#pragma once

// Pipeline schedules: in which order each rank of a pipeline runs its work. A schedule has no
// times: generate.h has the costs of work, and the replay finds when it runs.
//
//     1F1B, 3 stages, 3 micro-batches          stage 0 runs first in the forward pass
//
//     rank 0   0F0 0F1 0F2 0B0 0B1 0B2         2F1: stage 2, forward pass of micro-batch 1
//     rank 1   1F0 1F1 1B0 1F2 1B1 1B2
//     rank 2   2F0 2B0 2F1 2B1 2F2 2B2
//
// A forward pass waits for that of the stage before, a backward pass for that of the stage behind.
// A schedule with `chunks` gives a rank several stages. With several pipelines the same stage is on
// several ranks, each with its own copy of the weights, and a micro-batch goes through one
// pipeline.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"

namespace foretrace {

/// backward is input_gradient and weight_gradient in one. reduce starts the all-reduce of a stage's
/// gradients, update waits for it and makes the next version of the weights.
enum class ActionKind : std::uint8_t {
  forward,
  backward,
  input_gradient,
  weight_gradient,
  reduce,
  update
};

struct Action {
  ActionKind kind = ActionKind::forward;
  std::uint8_t half = 0;  ///< 1 or 2: one half of the micro-batch; 0: all of it.
  /// Runs together with the next action, as the forward and backward passes of DualPipe do.
  bool overlaps_next = false;
  /// The next action ends before other ranks get the result of this one.
  bool sends_late = false;
  std::int32_t stage = 0;
  std::int32_t micro_batch = 0;  ///< Numbered across batches; 0 for reduce and update.
  std::int32_t pipeline = 0;     ///< Even ones go down the ranks, odd ones up.
  /// Number of updates in the weights that it uses; for an update, in the weights that it makes.
  std::int32_t version = 0;

  friend bool operator==(const Action&, const Action&) = default;
};

/// Whether it is work on a micro-batch.
inline bool is_pass(const Action& action) {
  return action.kind != ActionKind::reduce && action.kind != ActionKind::update;
}

struct Schedule {
  std::string name;
  std::int32_t ranks = 0;
  std::int32_t stages = 0;         ///< Stages of the model; `chunks` times as many as ranks.
  std::int32_t chunks = 1;         ///< Stages of the model that a pipeline has on each rank.
  std::int32_t micro_batches = 0;  ///< Micro-batches of all batches.
  bool splits_backward = false;    ///< Weight gradients are actions of their own.
  std::vector<std::vector<Action>> orders;  ///< By rank.
  /// The forward passes that a rank may have in flight (see peaks_in_flight); empty: any number.
  std::vector<std::int32_t> in_flight_limits;
};

/// The rule that makes schedules of one kind. Its settings are those of the command line.
class ScheduleRule : public Described {
 public:
  std::int64_t stages = 4;  ///< Ranks of the pipeline.
  std::int64_t micro_batches = 8;
  /// Stages of the model on each rank; a setting if the rule serves any number.
  std::int64_t chunks = 1;

  /// Names `stages`, `micro_batches` and, if it is a setting, `chunks`; then the settings of the
  /// rule.
  void describe(Fields& fields) final;
  /// Throws Error, beginning with the setting, if the rule does not support its settings.
  virtual void check() const {}
  /// Makes a legal schedule. Throws Error as check() does.
  virtual Schedule make() const = 0;
  virtual bool serves_any_chunks() const { return false; }
  /// Whether all ranks end a batch before the next one begins.
  virtual bool flushes() const { return true; }

 protected:
  explicit ScheduleRule(std::int64_t chunks_a_rank = 1) : chunks(chunks_a_rank) {}
  virtual void describe_more(Fields&) {}
};

/// One per line of schedules.def.
struct ScheduleEntry {
  std::string_view name, summary;
  std::unique_ptr<ScheduleRule> (*make)();
};
const std::vector<ScheduleEntry>& schedules();

/// By name or synonym: dapple and pipedream_flush are 1f1b. Throws Error with the nearest name.
std::unique_ptr<ScheduleRule> find_schedule(std::string_view name);

/// The first thing that is wrong with a schedule, as one sentence: "rank 1, slot 3: 1B0 waits for
/// 2B0, which rank 2 only runs at slot 5". A slot is a place in the order of its rank, from 0.
struct ScheduleFault {
  std::int32_t rank = 0, slot = 0;
  std::string text;
};

/// Returns nullopt if every micro-batch passes forward and backward through every stage exactly
/// once and on one rank, with one version of the weights that was made before; every order can be
/// run to its end; and no rank exceeds its limit of passes in flight. Otherwise returns the first
/// fault. Linear.
std::optional<ScheduleFault> find_fault(const Schedule& schedule);

/// By rank, the most forward passes whose activations wait for an input gradient at once. A pass of
/// one of several chunks counts as one.
std::vector<std::int32_t> peaks_in_flight(const Schedule& schedule);

/// By rank, the most versions of a stage's weights that are needed at once: those of passes in
/// flight and of passes to come.
std::vector<std::int32_t> versions_kept(const Schedule& schedule);

/// "3F5" as PyTorch writes it: stage, F, B (whole), I (input), W (weight), micro-batch.
std::string to_string(const Action& action);

/// The format of torch.distributed.pipelining: one line per rank, "0F0,0F1,1B0"; an overlapped pair
/// is "(0F4;3B2)OVERLAP_F_B". Throws Error on several pipelines or halves, which the format cannot
/// express.
std::string schedule_to_csv(const Schedule& schedule);

/// Reads a compute-only schedule, or one with communication, which is skipped, as are gathering and
/// freeing of weights. Throws Error with line and column, or with the fault if it is not legal.
Schedule schedule_from_csv(std::string_view text);

}  // namespace foretrace
