#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "foretrace/answer/figure.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/notes.h"

namespace foretrace {

nlohmann::json notes_json(const Notes& notes);

/// Returns an object with the nanoseconds of each part.
nlohmann::json breakdown_json(const Breakdown& breakdown);

nlohmann::json inputs_json(const std::vector<InputFile>& inputs);

/// Returns an object with all rates; unknown ones are null.
nlohmann::json rates_json(const StepRates& rates, const Breakdown& breakdown,
                          Nanoseconds step_time);

/// Returns what the recording shows about a rank among the others: its matched collectives, waits
/// and clock.
nlohmann::json rank_facts_json(const RankFacts& facts);

/// Returns an object with a number for each figure.
nlohmann::json figures_json(const std::vector<Figure>& figures);

}  // namespace foretrace
