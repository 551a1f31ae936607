#pragma once

#include <nlohmann/json_fwd.hpp>

namespace foretrace {

/// Checks {"transforms[1].workers": [2, 4, 8]} against the scenario it is part of: every path names
/// a setting that is there, and every value can be read. Throws Error.
void check_sweep(const nlohmann::json& sweep, const nlohmann::json& scenario);

}  // namespace foretrace
