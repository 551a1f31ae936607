#pragma once

// Finds changes that would help: the job is replayed without each cause of waiting, with each
// transform that is worth trying, with the best of them together, and with its parts made faster
// one by one.

#include <string>
#include <vector>

#include "foretrace/answer/advice.h"
#include "foretrace/infer.h"
#include "foretrace/question/predict.h"

namespace foretrace {

struct AdviceQuestion {
  std::vector<std::string> only = {}, skip = {};  ///< Transforms; `only` empty: all worth trying.
  std::string machine = {};  ///< Name or path of a device that the job is moved to first.
  /// Name or path for find_cluster(): the machine over whose network the job communicates, or would
  /// on more GPUs. Without it buckets, algorithms and more GPUs are not tried.
  std::string network = {};
  std::string until = {};  ///< "step_time <= 100ms", "throughput >= 4000"; empty: no target.
  double samples = 0;      ///< Samples in a recorded step, for throughput.
  /// With a target: one speed-up ("link.bandwidth"), or a setting with values
  /// ("loader.workers=1..32"); everything else is left out.
  std::string vary = {};
  /// CSV file with the columns name and factor: kernels that are changed one by one, in place of
  /// everything else. Empty: none.
  std::string candidates = {};
  std::size_t top = 5;
};

/// Works on all cores; the answer does not depend on their number. With several ranks, step
/// times are those of the slowest, and the path, the breakdown and the work are those of the one
/// that the others wait for, or else of the slowest. Throws Error.
Advice advise(const Job& job, const AdviceQuestion& question = {},
              const std::string& ledger_path = {});

}  // namespace foretrace
