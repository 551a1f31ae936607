#pragma once

// Measured deployments: rows of a CSV with what was served, on what, and how fast it was.

#include <string>
#include <vector>

#include "serve/model.h"

namespace foretrace::serve {

struct MeasuredDeployment {
  std::string id{}, model, system, scheduler, version{}, weights, flags{};
  Placement placement{};
  std::int64_t input = 0, output = 0;
  std::int64_t concurrency = 0;  ///< All ranks of a copy together.
  double first_ms = 0, gap_ms = 0;
};

struct MeasuredDeployments {
  std::vector<MeasuredDeployment> rows;
  std::int64_t apart = 0;    ///< Rows with prompts apart, which are left out.
  std::int64_t unknown = 0;  ///< Rows without a known model, machine or layout, left out as well.
};

/// Columns: model, system, backend, version, mode, isl, osl, concurrency, weights, moe, tp, dp,
/// moe_ep, ttft_ms, tpot_ms, flags, id; others are ignored. Systems are names of machines, or
/// as in "h100_sxm". Throws Error with the line.
MeasuredDeployments read_measured(const std::string& path);

}  // namespace foretrace::serve
