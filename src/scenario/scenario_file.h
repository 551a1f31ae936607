#pragma once

// Scenario files: the files they extend, and the paths in them, each relative to the file that it
// is written in.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "foretrace/scenario.h"

namespace foretrace {

struct ScenarioFile {
  nlohmann::json json;  ///< With the files it extends; its paths work, but for those of "sweep".
  std::string sweep_folder;  ///< Where the file lies that has "sweep".
};
/// `readers` extend this one, directly or through each other.
ScenarioFile read_extended(const std::string& path, std::vector<std::string> readers = {});

/// Keys missing in `json` come from the base; its transforms and assertions come after those of the
/// base.
nlohmann::json extended(const nlohmann::json& base, const nlohmann::json& json);

/// Makes the paths in a scenario or a part of one relative to the working directory, but for those
/// of "sweep": the steps that it is about may come from other files.
void rebase_scenario(nlohmann::json& json, const std::string& folder);

}  // namespace foretrace
