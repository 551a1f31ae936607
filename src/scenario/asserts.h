#pragma once

// Assertions of a scenario about its prediction: "step_time <= 120ms".

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/scenario.h"

namespace foretrace {

/// The texts that {"step_time": "<= 120ms"} stands for, one per key. Throws Error.
std::vector<std::string> read_assert(const nlohmann::json& json);

/// {"step_time": "<= 120ms"} again.
nlohmann::json write_assert(const std::string& text);

/// Every assertion of the scenario, in its order.
std::vector<CheckedAssert> evaluate_asserts(const Scenario& scenario, const Prediction& prediction);

/// Throws Error if it cannot be read.
void check_assert(const std::string& text);

/// Whether it is about how long a step takes. Throws Error if it cannot be read.
bool is_assert_of_time(const std::string& text);

/// Whether the most likely value satisfies it, however wide the interval. Throws Error if its
/// subject is unknown.
bool holds_at_point(const std::string& text, const Prediction& prediction);

/// The possible subjects, for help and the schema.
const std::vector<std::string_view>& assert_names();

}  // namespace foretrace
