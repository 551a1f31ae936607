#pragma once

// Finds the best layout of a training job on a given number of GPUs, among all layouts that the
// model, the batch and the memory of a device allow.
//
//     layouts --memory--> those that fit --bound--> those that may win --replay--> ranked
//
// A bound is the price of a step whose pipeline has only the unavoidable bubbles (price.h). A
// layout is not replayed if its bound is slower than the last layout shown and another layout is
// better in time, memory and price. The answer is therefore the same as if all layouts were
// replayed.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/launch.h"
#include "price/calibration.h"
#include "price/price.h"

namespace foretrace {

/// The searched settings are tp, pp, dp, cp, ep, virtual_stages, micro_batch (powers of two),
/// schedule, recompute, zero and sequence_parallel.
struct PlanSpace {
  /// Model, machine, and the settings that are not searched; its time is ignored.
  MeasuredStep step{};
  std::vector<std::int64_t> gpus;  ///< GPU counts to choose from.
  std::set<std::string> fixed{};   ///< Searched settings that keep their value from `step`.
  bool all_schedules = false;      ///< Also those that no known program offers.
  std::optional<Bytes> memory{};   ///< Memory limit of a device; nullopt: all that it has.
  double gpu_hour = 0;             ///< Price of a GPU for an hour; 0 if unknown.
  std::size_t shown = 10;          ///< Number of fastest layouts to rank.
  std::vector<const LaunchProgram*> programs =
      flag_programs();      ///< Whose fastest layouts are wanted.
  std::size_t threads = 0;  ///< 0: all idle cores. The answer does not depend on it.

  Bytes limit() const;  ///< Memory of a device that layouts may use.
};

/// Schedules with a flush, which all train the same: those with which one of launch_programs() runs
/// some layout, and with `all` the others.
std::vector<std::string_view> planned_schedules(bool all);

/// Why a layout is slower than the best: the category with most of the difference.
enum class Loss : std::uint8_t { none, memory, bubble, network, kernels };
std::string_view to_string(Loss loss);

/// Microseconds of a step by possible cause of loss; they add up to the time of the step.
struct PriceParts {
  double bubble = 0, network = 0, kernels = 0;
};
PriceParts parts_of(const CalibratedPrice& priced);
/// Returns the category with most of the difference to a faster layout.
Loss loss_of(const PriceParts& parts, const PriceParts& best);

struct PlannedLayout {
  Layout layout{};
  CalibratedPrice price{};
  double cost = 0;  ///< Price of a step, in the unit of PlanSpace::gpu_hour.
  bool fits = true;
  Loss loss = Loss::none;
};

struct PlanOutcome {
  std::vector<PlannedLayout> best;  ///< Fastest first.
  /// Layouts that no other beats in time, memory and price; fastest first.
  std::vector<PlannedLayout> front;
  /// Data parallelism alone, without sharding: the fastest layout for each count of GPUs. If none
  /// fits, the one that needs the least memory; no entry if the batch does not divide.
  std::vector<PlannedLayout> plain;
  /// The fastest layout that each of PlanSpace::programs can run.
  std::vector<std::optional<PlannedLayout>> launched;
  std::size_t candidates = 0, replayed = 0;
  /// Counts of the candidates that are neither ranked nor in the front, by loss; `memory` counts
  /// those that do not fit.
  std::vector<std::pair<Loss, std::size_t>> losses;
};

/// Throws Error if no layout is left, naming the constraint that excluded the last ones. Names in
/// `fixed` must be searched settings.
PlanOutcome plan_layouts(const PlanSpace& space, const StepCalibration& calibration);

/// Returns the layouts of data parallelism alone, by count of GPUs, as in PlanOutcome::plain.
std::vector<PlannedLayout> plain_layouts(const PlanSpace& space,
                                         const StepCalibration& calibration);

/// Prices one layout, and compares it with the best layout of an outcome.
PlannedLayout planned_layout(const PlanSpace& space, const Layout& layout,
                             const StepCalibration& calibration, const PlannedLayout& best);

/// Returns all layouts of a space, whether they fit or not, in the order in which equally fast ones
/// are ranked. Throws Error if there are none.
std::vector<Layout> all_layouts(const PlanSpace& space);

}  // namespace foretrace
