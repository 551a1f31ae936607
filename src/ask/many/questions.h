#pragma once

// The questions of a sweep and their subject: the plan, the traces with their baselines, and
// everything common to all answers.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ask/job/chosen_rank.h"
#include "ask/job/job.h"
#include "ask/predict/baseline.h"
#include "foretrace/ask/sweep.h"
#include "scenario/plan.h"

namespace foretrace {

/// A trace that is asked about.
struct SweptJob {
  Job job;
  std::vector<Baseline> baselines;  ///< By rank.
  Slowest slowest;                  ///< As recorded.

  const Prediction& recorded() const { return baselines[slowest.rank()].prediction; }
};

/// Which settings of a combination of alternatives only retime.
struct SharedShape {
  std::size_t tail = 0;
  std::vector<char> retimes;  ///< By axis.
  bool any = false;
};

class SweepQuestions {
 public:
  SweepQuestions(nlohmann::json scenario, const std::string& sweep_folder,
                 const SweepOptions& with);

  /// All that are asked about. Throws Error.
  void read_traces();
  /// In place of reading one.
  void take(Job job);

  const SweptJob& job_of(const nlohmann::json& scenario) const;

  SweepPlan plan;
  SweepOptions options;
  std::size_t jobs = 1;
  SweepHeader header;
  std::vector<SharedShape> shapes;        ///< By combination.
  std::map<std::string, SweptJob> known;  ///< By path.

 private:
  /// Assertions and shape of a combination.
  void note(const SweepCombination& combination);
  /// The first values listed; for ranges their ends, even if values are drawn.
  static std::vector<SweepValue> first_values(const SweepCombination& combination);
  void check_wanted(const std::string& text) const;
  /// Paths of all traces that are asked about.
  std::set<std::string> trace_paths() const;
  /// Traces that transforms learn from, and machine files.
  void read_other_files();
  void describe_recorded();
};

}  // namespace foretrace
