#pragma once

// `foretrace generate`: what a training step of a described model costs, without a trace.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/generation.h"
#include "foretrace/question/training.h"

namespace foretrace {

struct GenerateQuestion {
  std::string model{};    ///< For find_workload(); may be empty if rows name theirs.
  std::string machine{};  ///< For find_cluster(); may be empty if rows name their devices.
  std::string layout{};   ///< Settings of Layout: "tp=8,pp=12".
  /// Configuration file of the program that launches the job: model, batch and layout, as far as
  /// the other settings do not say them.
  std::string config{};
  std::optional<std::int64_t> gpus{};  ///< On which the file's job runs, if it does not say.

  std::optional<Bytes> memory_limit{};  ///< Of a device; all of it if not given.
  TrainingQuestion training{};

  std::string against{};             ///< Table of measured steps to compare with.
  std::string calibrate{};           ///< Table of measured steps to fit to.
  std::int64_t calibrate_rows = -1;  ///< How many of them; -1: 5, or 5 % if that is more; 0: all.
  std::vector<std::string> only{};   ///< "column=text": selects rows of tables.
};

/// Throws Error if the question cannot be answered. A step that needs more memory than a device has
/// is priced as well; the assumptions then have the three largest parts.
GenerationReport generate_step(const GenerateQuestion& question);

}  // namespace foretrace
