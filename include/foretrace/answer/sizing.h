#pragma once

// The answer of `foretrace plan size`: how many GPUs and parameter servers a data parallel job is
// worth, and which batch and algorithms its memory allows.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/answer/trust.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

struct SizedCount {
  std::int64_t gpus = 1;
  double speedup = 1, efficiency = 1;
  std::optional<double> overhead_allowed{};  ///< R with the efficiency that was asked for.
  std::optional<std::int64_t> servers{};
};

struct SizedLayer {
  std::string name{}, algorithm{};
  Nanoseconds time{0};
  Bytes memory{};
};

struct SizedBatch {
  std::int64_t size = 1;
  Bytes bound{};           ///< Left for work space; negative where the rest does not fit.
  bool fits = false;       ///< Some algorithms need no more.
  Nanoseconds time{0};     ///< Of a step.
  double epochs = 1;       ///< Until the target is reached.
  double total_hours = 0;  ///< So long takes that.
  Bytes memory{};
  std::vector<SizedLayer> layers{};
};

struct SizingReport {
  std::string trace{};                                       ///< Empty: numbers were given.
  std::optional<Nanoseconds> compute{}, overhead{};          ///< Of a step on one GPU.
  std::vector<std::pair<std::string, Nanoseconds>> parts{};  ///< Of the overhead, from the trace.
  std::vector<SizedCount> counts{};
  std::optional<double> speedup{}, gpus_for_speedup{}, speedup_limit{};
  std::optional<double> efficiency{}, gpus_for_efficiency{};
  std::optional<Bytes> model{};
  Bandwidth server{};

  std::string solver{};
  Bytes memory{};                     ///< Of a GPU.
  std::vector<SizedBatch> batches{};  ///< In the order of the file.
  std::optional<std::size_t> best{};  ///< Into `batches`.
  Trust trust{};
  std::vector<std::string> assumptions{};
  Notes notes{};

  double overhead_share() const;  ///< R.
};

}  // namespace foretrace
