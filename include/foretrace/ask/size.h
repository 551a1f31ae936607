#pragma once

// `foretrace plan size`: how many GPUs and parameter servers for a job that one GPU runs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/sizing.h"
#include "foretrace/import.h"

namespace foretrace {

/// A file of layers is JSON:
///
///     {"samples": 1281167,
///      "batches": [{"size": 128, "epochs": 60, "feature_maps": "3GB", "parameters": "1GB",
///                   "classifier": "200MB",
///                   "layers": [{"name": "conv1",
///                               "algorithms": [{"name": "fft", "time": "3ms", "memory": "1GB"},
///                                              {"name": "gemm", "time": "5ms"}]}]}]}
struct SizeQuestion {
  std::string trace{};                               ///< Path of a trace; or the two times:
  std::optional<Nanoseconds> compute{}, overhead{};  ///< Parts of a step on one GPU.
  std::vector<std::int64_t> gpus{};
  std::optional<double> speedup{}, efficiency{};  ///< Targets.
  std::optional<Bytes> model{};                   ///< Empty: the gradients of the trace.
  Bandwidth server{};                             ///< Per parameter server; 0: none are asked for.
  std::string layers{};                           ///< Path of a file of layers.
  std::optional<Bytes> memory{};                  ///< Memory of a GPU, for `layers`.
  std::string solver = "exact";                   ///< exact, milp
  ImportOptions reading{};
};

/// Throws Error if the question cannot be answered.
SizingReport size_job(const SizeQuestion& question);

}  // namespace foretrace
