#pragma once

// Parses the text of settings, "workers=4,where.name=/a,b/": finds where a value ends and the next
// begins.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "foretrace/fields.h"

namespace foretrace {

/// Returns one past the last character of a value that begins with a slash, quote or bracket and is
/// closed, including its commas; 0 for an ordinary value, which ends at the next comma.
std::size_t end_of_enclosed(std::string_view value);

/// Writes settings as assignments, "tp=8,schedule=1f1b". REQUIRES: values without commas.
std::string assignments_text(const nlohmann::json& settings);

/// Reads settings from assignments: read_json() of read_assignments().
void read_assigned(std::string_view text, Described& object);

}  // namespace foretrace
