#pragma once

#include <nlohmann/json_fwd.hpp>

namespace foretrace {

/// Draft-07 schema of the output of `predict --format json`. Keys may be added to it, but are never
/// renamed.
nlohmann::json prediction_schema();

}  // namespace foretrace
