#pragma once

// What a scenario demands of its prediction: "step_time <= 120ms".

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/report.h"
#include "foretrace/scenario.h"

namespace foretrace {

/// undecided: the interval of the prediction straddles the threshold.
enum class Verdict { holds, fails, undecided };

struct CheckedAssert {
  std::string text;   ///< As written: "step_time <= 120ms".
  Verdict verdict = Verdict::holds;
  std::string found;  ///< "131.2 ms (125.0 ms to 138.1 ms)".
};

/// The texts that {"step_time": "<= 120ms"} stands for, one per key. Throws Error.
std::vector<std::string> read_assert(const nlohmann::json& json);

/// {"step_time": "<= 120ms"} again.
nlohmann::json write_assert(const std::string& text);

/// Every assertion of the scenario, in its order.
std::vector<CheckedAssert> evaluate_asserts(const Scenario& scenario, const Prediction& prediction);

/// Those that do not hold.
std::vector<CheckedAssert> check_asserts(const Scenario& scenario, const Prediction& prediction);

/// Of what can be asserted, for help and the schema.
const std::vector<std::string_view>& assert_names();

}  // namespace foretrace
