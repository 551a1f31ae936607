#pragma once

// `foretrace scale`: a job on one GPU is predicted on many, scheme by scheme and count by count.
// Each point is a prediction in which the scheme follows all other changes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/scale.h"
#include "foretrace/question/predict.h"
#include "foretrace/question/training.h"

namespace foretrace {

struct ScaleQuestion {
  std::string trace;         ///< Empty: only `step_time` is known.
  Nanoseconds step_time{0};  ///< Time of a step on one GPU, without a trace.
  /// The part of `step_time` that the update takes, which nothing overlaps; 2 % if not known.
  std::optional<Nanoseconds> update_time = {};
  Scenario scenario = {};            ///< Changes before the job is scaled.
  std::string machine;               ///< For find_cluster(); empty: the schemes name a network.
  std::vector<std::int64_t> gpus;    ///< Ascending.
  std::vector<std::string> schemes;  ///< Steps that take `gpus`; empty: data_parallel.
  TrainingQuestion training = {};    ///< Of as many samples as so many steps of one worker have.
  ImportOptions reading = {};
  std::string ledger_path = {};  ///< The user's own ledger of errors; empty: none.
};

/// "1..1024" (doubled from one to the next), "8..64/8" (8 more from one to the next), "1,8,16".
/// Throws Error.
std::vector<std::int64_t> read_counts(const std::string& text);

/// Throws Error if no point has an answer. A single point without one says why.
ScaleReport scale(const ScaleQuestion& question);

}  // namespace foretrace
