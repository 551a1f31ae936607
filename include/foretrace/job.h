#pragma once

// A job that was recorded: opened once, asked often.
//
//     const Job job("runs/7");
//     std::cout << to_text(predict(job, scenario).predicted.step_time);
//     const Advice advice = advise(job);

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/question/advise.h"
#include "foretrace/question/predict.h"

namespace foretrace {

struct JobRanks;

struct JobOptions {
  ImportOptions reading = {};
  /// Ranks of the whole job, for which recorded ranks are repeated; 0: only the recorded ones.
  std::int32_t world_size = 0;
  /// Keeps what timelines are written from. It takes memory.
  bool keeps_traces = false;
};

/// The ranks of a job, each with the graph of its recording, joined where they wait for each other.
/// Safe to use from several threads at once.
class Job {
 public:
  /// Reads a trace, or all in a folder. Throws TraceError.
  explicit Job(const std::string& path, const JobOptions& options = {});
  // NOLINTBEGIN(google-explicit-constructor): recordings are a job.
  /// Recordings that were read already, by rank. Throws TraceError if they are not of one job.
  Job(std::vector<Inference> ranks);
  /// A job of one rank, which is copied.
  Job(const Inference& rank);
  // NOLINTEND(google-explicit-constructor)
  Job(Job&&) noexcept;
  ~Job();

  const std::string& path() const;  ///< Empty if no file was read.
  const JobOptions& options() const;
  /// The files that it was read from.
  const std::vector<InputFile>& inputs() const;
  const JobRanks& ranks() const;

 private:
  friend Prediction quick_prediction(const Job& job, const Scenario& scenario);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The step time and the memory of predict(), from one replay: the interval is as wide as the
/// variation of recorded steps, the grade is that of the recording, and there is no breakdown.
Prediction quick_prediction(const Job& job, const Scenario& scenario);

}  // namespace foretrace
