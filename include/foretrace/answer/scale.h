#pragma once

// The answer of `foretrace scale`: what a job on one GPU would do on more of them, count by count.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/answer/training.h"
#include "foretrace/answer/trust.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

struct ScalePoint {
  std::string scheme;  ///< A step with its settings: "data_parallel:bucket=50MB".
  std::int64_t gpus = 1;
  Nanoseconds step_time{0}, lower{0}, upper{0};
  double throughput = 1;       ///< Relative to one worker: the recorded GPU, or those it became.
  double efficiency = 1;       ///< Throughput of each worker, relative to one alone.
  Nanoseconds transfer{0};     ///< Communication of a step, overlapped or not.
  Nanoseconds exposed{0};      ///< Time of a step in which only communication runs.
  Nanoseconds late{0};         ///< Time of a step in which workers wait for the slowest one.
  std::optional<Bytes> peak;   ///< Allocated, on the fullest device; empty if memory is unknown.
  std::optional<double> rate;  ///< Samples a second, if the samples of a step are known.
  std::optional<TrainingRun> training;
  Grade trust = Grade::good;
  std::string refused;  ///< Why there is no answer; the other facts are empty then.
};

struct ScaleReport {
  std::vector<InputFile> inputs;
  std::string machine;
  std::vector<std::string> changes;  ///< Steps before the job is scaled.
  std::int64_t gpus_per_worker = 1;  ///< GPUs that these changes made of the recorded one.
  Nanoseconds recorded{0};           ///< Step time of one worker, after these changes.
  std::vector<ScalePoint> points;    ///< By scheme, then by count.
  std::vector<std::string> limits;   ///< For each scheme a sentence: what stops the scaling.
  std::vector<std::string> assumptions;
  Trust trust;  ///< Trust of the least reliable point.
  Notes notes;
};

class Document;
/// For people, in every form.
Document document_of(const ScaleReport& report);
/// The object with schema "foretrace.scale/1".
nlohmann::json to_json(const ScaleReport& report);
/// One row for each scheme and count.
void write_csv(const ScaleReport& report, std::ostream& out);

}  // namespace foretrace
