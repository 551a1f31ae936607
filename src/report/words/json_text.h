#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/figure.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/notes.h"

namespace foretrace {

/// Indented; bytes that are not UTF-8 (names in traces may contain any) become replacement
/// characters.
std::string json_text(const nlohmann::json& value);

nlohmann::json notes_json(const Notes& notes);

/// Nanoseconds, by part.
nlohmann::json breakdown_json(const Breakdown& breakdown);

/// Null for nothing.
nlohmann::json number_json(const std::optional<double>& number);
nlohmann::json bytes_json(const std::optional<Bytes>& bytes);

nlohmann::json inputs_json(const std::vector<InputFile>& inputs);

/// Null for a rate that is not known.
nlohmann::json rates_json(const StepRates& rates, const Breakdown& breakdown,
                          Nanoseconds step_time);

/// The part of a rank in the meetings of all.
nlohmann::json rank_facts_json(const RankFacts& facts);

/// An object with a number for each.
nlohmann::json figures_json(const std::vector<Figure>& figures);

}  // namespace foretrace
