#pragma once

// `foretrace plan size`: how many GPUs and parameter servers a data parallel job is worth, and
// which batch and algorithms its memory allows.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/answer/trust.h"
#include "foretrace/import.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

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

struct SizedCount {
  std::int64_t gpus = 1;
  double speedup = 1, efficiency = 1;
  std::optional<double> overhead_allowed{};  ///< Greatest R with the wanted efficiency; empty: any.
  std::optional<std::int64_t> servers{};
};

struct SizedLayer {
  std::string name{}, algorithm{};
  Nanoseconds time{0};
  Bytes memory{};
};

struct SizedBatch {
  std::int64_t size = 1;
  Bytes bound{};           ///< Memory left for work space; negative if the rest does not fit.
  bool fits = false;       ///< Whether some choice of algorithms needs no more.
  Nanoseconds time{0};     ///< Step time.
  double epochs = 1;       ///< Epochs until the target is reached.
  double total_hours = 0;  ///< Time of these epochs.
  Bytes memory{};
  std::vector<SizedLayer> layers{};
};

struct SizingReport {
  std::string trace{};                                       ///< Empty if times were given instead.
  std::optional<Nanoseconds> compute{}, overhead{};          ///< Parts of a step on one GPU.
  std::vector<std::pair<std::string, Nanoseconds>> parts{};  ///< Parts of the overhead of a trace.
  std::vector<SizedCount> counts{};
  std::optional<double> speedup{}, gpus_for_speedup{}, speedup_limit{};
  std::optional<double> efficiency{}, gpus_for_efficiency{};
  std::optional<Bytes> model{};
  Bandwidth server{};

  std::string solver{};
  Bytes memory{};                     ///< Memory of a GPU.
  std::vector<SizedBatch> batches{};  ///< In the order of the file.
  std::optional<std::size_t> best{};  ///< Into `batches`.
  Trust trust{};
  std::vector<std::string> assumptions{};
  Notes notes{};

  double overhead_share() const;  ///< R = overhead / compute. REQUIRES: both are set.
};

class Document;
/// For people, in every form.
Document document_of(const SizingReport& report);
/// The object with schema "foretrace.sizing/1".
nlohmann::json to_json(const SizingReport& report);

/// Throws Error if the question cannot be answered.
SizingReport size_job(const SizeQuestion& question);

}  // namespace foretrace
