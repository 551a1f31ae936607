#pragma once

// `foretrace plan`: the best layouts of a described model on so many GPUs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/plan.h"
#include "foretrace/import.h"

namespace foretrace {

struct PlanQuestion {
  std::string model, machine;        ///< For find_workload(), or a trace; for find_cluster().
  std::vector<std::int64_t> gpus{};  ///< Empty: as many as `layout` has.
  /// Samples; 0: as in `layout`. With a trace recorded batches; 0: one for each of the most GPUs.
  std::int64_t global_batch = 0;
  std::string layout{};              ///< The user's own: always in the answer.
  std::string fix{};                 ///< Settings that all layouts share: "tp=8".
  std::optional<Bytes> memory{};     ///< Of a device; nothing: all it has.
  std::string prices{};              ///< JSON: {"prices": {"h100": "2.5 USD/h"}}.
  std::string measured{};            ///< Table of measured steps to reproduce first.
  std::string calibrate{};           ///< Table of measured steps to fit to.
  std::int64_t calibrate_rows = -1;  ///< As of `generate`.
  std::vector<std::string> only{};   ///< "column=text": rows of tables.
  std::size_t top = 10;              ///< Layouts to rank.
  std::string strategy = "exhaustive";

  Bytes gradients{};  ///< With a trace that does not show them.
  Bytes output{};     ///< Between stages of a trace's model; 0: sends take no time.
  ImportOptions reading{};
};

/// Throws Error where a question cannot be answered, or no layout is left.
PlanReport plan(const PlanQuestion& question);

}  // namespace foretrace
