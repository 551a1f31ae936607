#pragma once

// `foretrace plan`: the best layouts of a described model on so many GPUs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/plan.h"

namespace foretrace {

struct PlanQuestion {
  std::string model, machine;        ///< For find_workload() and find_cluster().
  std::vector<std::int64_t> gpus{};  ///< Empty: as many as `layout` has.
  std::int64_t global_batch = 0;     ///< Samples; 0: as in `layout`.
  std::string layout{};              ///< The user's own: always in the answer.
  std::string fix{};                 ///< Settings that all layouts share: "tp=8".
  std::optional<Bytes> memory{};     ///< Of a device; nothing: all it has.
  std::string prices{};              ///< JSON: {"prices": {"h100": "2.5 USD/h"}}.
  std::string measured{};            ///< Table of measured steps to reproduce first.
  std::string calibrate{};           ///< Table of measured steps to fit to.
  std::int64_t calibrate_rows = -1;  ///< As of `generate`.
  std::vector<std::string> only{};   ///< "column=text": rows of tables.
  std::size_t top = 10;              ///< Layouts to rank.
};

/// Throws Error where a question cannot be answered, or no layout is left.
PlanReport plan(const PlanQuestion& question);

}  // namespace foretrace
