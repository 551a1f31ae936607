#pragma once

// A job that stays in memory for many questions: it is read, inferred and joined once.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ask/job/job.h"
#include "foretrace/ask/predict.h"

namespace foretrace {

struct SweptJob;

/// Safe to use from several threads at once.
class LoadedJob {
 public:
  /// Throws TraceError.
  LoadedJob(const std::string& path, const ImportOptions& reading, std::int32_t world_size = 0);
  ~LoadedJob();

  /// Like the functions of the same names, which read the job for each question.
  Prediction predict(const Scenario& scenario, PredictOptions options) const;
  Curve vary(const Scenario& scenario, const Vary& question, PredictOptions options) const;
  /// The step time and the memory of predict(), from one replay: the interval is as wide as the
  /// variation of recorded steps, the grade is that of the recording, and there is no breakdown.
  Prediction quick_prediction(const Scenario& scenario) const;

 private:
  PredictOptions as_read(PredictOptions options) const;

  ImportOptions reading_;
  std::int32_t world_size_;
  Job job_;
  std::vector<InputFile> inputs_;
  mutable std::once_flag swept_once_;
  /// Made by the first call of quick_prediction().
  mutable std::unique_ptr<const SweptJob> swept_job_;
};

}  // namespace foretrace
