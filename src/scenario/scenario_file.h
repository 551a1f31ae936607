#pragma once

// Scenario files: the files they extend, and the paths in them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/scenario.h"

namespace foretrace {

/// The file including the files it extends; paths are relative to it. `readers` extend this one,
/// directly or through each other.
nlohmann::json read_extended(const std::string& path, std::vector<std::string> readers = {});

/// Keys missing in `json` come from the base; its transforms and assertions come after those of the
/// base.
nlohmann::json extended(const nlohmann::json& base, const nlohmann::json& json);

/// Paths in a file are relative to it; those of a base file become relative to the one that extends
/// it.
std::string relative_to(const std::string& folder, const std::string& path);

/// Whether a machine is named by its file.
bool is_machine_file(const std::string& machine);

/// parse_scenario(), with the paths of a file in `folder`.
Scenario parse_scenario_in(const nlohmann::json& json, const std::string& folder);

}  // namespace foretrace
