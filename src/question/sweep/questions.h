#pragma once

// The questions of a sweep, the traces they are about with their baselines, and everything that is
// common to all answers.

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "foretrace/question/sweep.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "question/predict/baseline.h"
#include "scenario/plan.h"

namespace foretrace {

/// A job that questions are about.
struct SweptJob {
  const JobRanks& job;
  std::vector<Baseline> baselines;  ///< By rank.
  SlowestRank slowest;              ///< The slowest rank, as recorded.

  const Prediction& recorded() const { return baselines[slowest.rank()].prediction; }
};

/// `job` must outlive the result.
SweptJob swept_job(const JobRanks& job, const SweepOptions& options);

/// Which settings of a combination only change durations. `tail` is the first of the transforms
/// that retime.
struct SharedShape {
  std::size_t tail = 0;
  std::vector<char> retimes;  ///< By axis.
  bool any_retimes = false;
};

class SweepQuestions {
 public:
  SweepQuestions(const nlohmann::json& scenario, const std::string& sweep_folder,
                 const SweepOptions& sweep_options);
  /// `scenario` is its text for the header.
  SweepQuestions(SweepPlan planned, std::string scenario, const SweepOptions& sweep_options);

  SweepQuestions(const SweepQuestions&) = delete;
  SweepQuestions& operator=(const SweepQuestions&) = delete;

  /// Reads all traces that questions are about. Throws Error.
  void read_traces();
  /// Asks about a job that was read already; it must outlive the questions.
  void ask_about(const JobRanks& job);

  const SweptJob& job_of(const nlohmann::json& scenario) const;
  EditedOptions edited_options() const {
    return {.memory = options.memory, .trust = options.grades_each_answer};
  }
  std::span<const AppliedStep> reported_of(std::span<const AppliedStep> steps) const;

  SweepPlan plan;
  SweepOptions options;
  std::size_t threads = 1;
  SweepHeader header;
  std::vector<SharedShape> shapes;  ///< By combination.
  std::map<std::string, SweptJob> jobs_by_path;
  /// Selects the transform whose figures the answers contain, counted from the last, which is 1; 0
  /// selects none. If empty, answers contain the figures of all transforms.
  std::optional<std::size_t> reported;

 private:
  /// Adds the assertions and the shape of a combination.
  void add_combination(const SweepCombination& combination);
  /// The first values of a combination. A range begins with its ends, even if values are drawn.
  static std::vector<SweepValue> first_values(const SweepCombination& combination);
  void check_is_computed(const std::string& text) const;
  /// Paths of all traces that questions are about.
  std::set<std::string> trace_paths() const;
  /// Adds the checksums of traces that transforms learn from, and of machine files.
  void read_other_files();
  void add_job(const std::string& path, const JobRanks& job);
  void describe_recorded();

  std::deque<JobRanks> jobs_;  ///< Jobs that were read or taken. `jobs_by_path` refers to them.
};

}  // namespace foretrace
