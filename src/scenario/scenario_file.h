#pragma once

// Scenario files, including the files they extend. Paths in a file are relative to that file.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "foretrace/scenario.h"

namespace foretrace {

struct ScenarioFile {
  nlohmann::json json;       ///< Includes the files it extends; paths are relative to the working
                             ///< directory, except those of "sweep".
  std::string sweep_folder;  ///< Folder of the file that contains "sweep".
};
/// Reads a scenario file. `readers` are the files that extend it, directly or indirectly.
ScenarioFile read_extended(const std::string& path, std::vector<std::string> readers = {});

/// Extends `base` by `json`: keys missing in `json` come from `base`; its transforms and assertions
/// follow those of `base`.
nlohmann::json extended(const nlohmann::json& base, const nlohmann::json& json);

/// Makes the paths in a scenario, or in a part of one, relative to the working directory. Paths in
/// "sweep" are left as they are, because the steps they refer to may come from other files.
void rebase_scenario(nlohmann::json& json, const std::string& folder);

}  // namespace foretrace
