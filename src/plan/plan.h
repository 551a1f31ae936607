#pragma once

// The best layout of a training job on so many GPUs, among all that the model, the batch and the
// memory of a device allow.
//
//     layouts --memory--> those that fit --bound--> those that may win --replay--> ranked
//
// A bound is the price of a step with a pipeline that has no more bubbles than it must have
// (price.h). A layout is not replayed where its bound is behind the last one that is shown and some
// other layout is better in time, memory and price. So the answer is that of replaying all.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/price.h"
#include "price/calibration.h"

namespace foretrace {

/// Searched settings are tp, pp, dp, cp, ep, virtual_stages, micro_batch (powers of two), schedule,
/// recompute, zero and sequence_parallel.
struct PlanSpace {
  MeasuredStep step{};             ///< Model, machine, and what is not searched; no time.
  std::vector<std::int64_t> gpus;  ///< Counts to choose from.
  std::set<std::string> fixed{};   ///< Searched settings that stay as in `step`.
  std::optional<Bytes> memory{};   ///< Of a device; nothing: all that it has.
  double gpu_hour = 0;             ///< Price of a GPU for an hour; 0 is unknown.
  std::size_t shown = 10;          ///< How many of the fastest to rank.
  std::size_t threads = 0;         ///< 0: idle cores. The answer is the same with any number.

  Bytes limit() const;  ///< Memory of a device that layouts may use.
};

/// Why a layout is slower than the best: where most of the difference is.
enum class Loss : std::uint8_t { none, memory, bubble, network, kernels };
std::string_view to_string(Loss loss);

/// Microseconds of a step by what may make it lose; their sum is its time.
struct PriceParts {
  double bubble = 0, network = 0, kernels = 0;
};
PriceParts parts_of(const CalibratedPrice& priced);
/// Where most of the difference to a faster one is.
Loss loss_of(const PriceParts& parts, const PriceParts& best);

struct PlannedLayout {
  Layout layout{};
  CalibratedPrice price{};
  double cost = 0;  ///< Of a step, in the unit of PlanSpace::gpu_hour.
  bool fits = true;
  Loss loss = Loss::none;
};

/// Programs that take a layout as flags: recalled from their releases of 2025.
struct LaunchProgram {
  std::string_view name;
  /// Whether it has a setting for all that the layout has.
  bool (*runs)(const Layout& layout);
  /// REQUIRES: it runs the layout.
  std::vector<std::string> (*flags)(const Layout& layout);
};
/// Megatron-LM (pretrain_gpt.py) and torchtitan.
const std::vector<LaunchProgram>& launch_programs();

struct PlanOutcome {
  std::vector<PlannedLayout> best;   ///< Fastest first.
  std::vector<PlannedLayout> front;  ///< None is better in time, memory and price; fastest first.
  /// Data parallelism alone, without sharding: the fastest for each count of GPUs; the one that
  /// needs least memory where none fits, nothing where the batch does not divide.
  std::vector<PlannedLayout> plain;
  /// The fastest that each of launch_programs() runs.
  std::vector<std::optional<PlannedLayout>> launched;
  std::size_t candidates = 0, replayed = 0;
  /// The candidates that are neither ranked nor in the front; memory: those that do not fit.
  std::vector<std::pair<Loss, std::size_t>> losses;
};

/// Throws Error where no layout is left, with the constraint that took the last one. A name of
/// `fixed` must be that of a searched setting.
PlanOutcome plan_layouts(const PlanSpace& space, const StepCalibration& calibration);

/// Data parallelism alone, by count of GPUs: as PlanOutcome::plain.
std::vector<PlannedLayout> plain_layouts(const PlanSpace& space,
                                         const StepCalibration& calibration);

/// Prices one layout, and compares it with the best of an outcome.
PlannedLayout planned_layout(const PlanSpace& space, const Layout& layout,
                             const StepCalibration& calibration, const PlannedLayout& best);

/// All layouts of a space, in the order in which equal ones are ranked, whether they fit or not.
/// Throws Error if there are none.
std::vector<Layout> all_layouts(const PlanSpace& space);

}  // namespace foretrace
