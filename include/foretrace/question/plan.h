#pragma once

// `foretrace plan`: the best layouts of a described or recorded model on a number of GPUs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/plan.h"
#include "foretrace/import.h"
#include "foretrace/question/training.h"

namespace foretrace {

struct PlanQuestion {
  /// `model` is for find_workload(), or the path of a trace; `machine` is for find_cluster().
  std::string model, machine;
  /// Configuration file of the program that launches the job: model, batch and layout, as far as
  /// the other settings do not say them. Its layout is the user's own.
  std::string config{};
  std::vector<std::int64_t> gpus{};  ///< Empty: as many as `layout` has.
  /// Samples of a step; 0: as in `layout`. With a trace, recorded batches of a step; 0: one for
  /// each GPU at the greatest number of GPUs.
  std::int64_t global_batch = 0;
  std::string layout{};              ///< The user's own: always in the answer.
  std::string fix{};                 ///< Settings that all layouts share: "tp=8".
  bool all_schedules = false;        ///< Also schedules that no program offers today.
  std::optional<Bytes> memory{};     ///< Limit per device; empty: all its memory.
  TrainingQuestion training{};       ///< Of the fastest layout.
  std::string measured{};            ///< Table of measured steps to reproduce first.
  std::string calibrate{};           ///< Table of measured steps to fit to.
  std::int64_t calibrate_rows = -1;  ///< As in GenerateQuestion.
  std::vector<std::string> only{};   ///< "column=text": selects rows of tables.
  std::size_t top = 10;              ///< Layouts to rank.
  std::string strategy = "exhaustive";

  Bytes gradients{};  ///< Size of the gradients, for a trace that does not show them.
  Bytes output{};     ///< Sent between stages of a trace's model; 0: sends take no time.
  ImportOptions reading{};
};

/// Throws Error if the question cannot be answered, or if no layout is left.
PlanReport plan(const PlanQuestion& question);

}  // namespace foretrace
