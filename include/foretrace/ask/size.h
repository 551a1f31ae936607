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
  std::string trace{};                               ///< Or numbers:
  std::optional<Nanoseconds> compute{}, overhead{};  ///< Of a step on one GPU.
  std::vector<std::int64_t> gpus{};
  std::optional<double> speedup{}, efficiency{};  ///< That are wanted.
  std::optional<Bytes> model{};                   ///< Nothing: the gradients of the trace.
  Bandwidth server{};                             ///< Of a parameter server; 0: none are asked for.
  std::string layers{};                           ///< A file.
  std::optional<Bytes> memory{};                  ///< Of a GPU, for `layers`.
  std::string solver = "exact";                   ///< exact, milp
  ImportOptions reading{};
};

/// Throws Error where a question cannot be answered.
SizingReport size_job(const SizeQuestion& question);

}  // namespace foretrace
