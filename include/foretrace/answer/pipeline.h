#pragma once

// The answer of `foretrace plan show`: a pipeline schedule as it runs.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// A pass or an update, with its times on its rank.
struct PipelineAction {
  std::string name;   ///< As PyTorch writes it: "2F5" is stage 2, forward, micro-batch 5.
  char letter = 'F';  ///< F, B (whole), I (input gradient), W (weight gradient), U (update).
  /// Whether its pipeline goes up the ranks, or its chunk is every other one of its rank.
  bool alternate = false;
  std::int32_t stage = 0, micro_batch = 0, version = 0;
  std::int32_t pipeline = 0;  ///< Even ones go down the ranks, odd ones up.
  Nanoseconds start{0}, finish{0};
};

struct PipelineRank {
  std::vector<PipelineAction> actions;
  Nanoseconds busy{0}, span{0};     ///< Time in passes; time from its first to its last pass.
  std::int32_t peak_in_flight = 0;  ///< Most forward passes that wait for an input gradient.
  std::int32_t versions = 1;        ///< Versions of the weights kept at once.
  Bytes peak_activations{}, parameters{};
};

struct PipelineReport {
  std::string schedule;       ///< "1f1b"
  std::string settings_json;  ///< All settings with their values, as compact JSON.
  std::int32_t stages = 0, chunks = 1, micro_batches = 0;
  Nanoseconds makespan{0};
  double bubble_rate = 0;
  std::vector<PipelineRank> ranks;
  std::vector<std::string> assumptions;
};

class Document;
/// For people, in every form.
Document document_of(const PipelineReport& report);
/// The object with schema "foretrace.pipeline/1".
nlohmann::json to_json(const PipelineReport& report);

}  // namespace foretrace
