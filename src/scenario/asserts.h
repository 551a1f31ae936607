#pragma once

// Assertions of a scenario about its prediction: "step_time <= 120ms".

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/scenario.h"

namespace foretrace {

/// Returns the text that each key of {"step_time": "<= 120ms"} stands for. Throws Error.
std::vector<std::string> read_assert(const nlohmann::json& json);

/// Converts a text back to {"step_time": "<= 120ms"}.
nlohmann::json write_assert(const std::string& text);

/// Evaluates every assertion of the scenario, in order.
std::vector<CheckedAssert> evaluate_asserts(const Scenario& scenario, const Prediction& prediction);

/// Returns whether the assertion is about the time of a step. Throws Error if it cannot be read.
bool is_step_time_assert(const std::string& text);

/// Returns whether the most likely value satisfies the assertion, however wide the interval. Throws
/// Error if its subject is unknown.
bool holds_at_point(const std::string& text, const Prediction& prediction);

/// The possible subjects of assertions, for help and the schema.
const std::vector<std::string_view>& assert_names();

}  // namespace foretrace
