#include "scenario/sweep.h"

#include <nlohmann/json.hpp>
#include <string>

#include "foretrace/error.h"
#include "scenario/setting.h"

namespace foretrace {

using Json = nlohmann::json;

void check_sweep(const Json& sweep, const Json& scenario) {
  if (!sweep.is_object())
    throw Error("must be an object such as {\"transforms[0].buffers\": [1, 2, 4]}");
  for (const auto& [path, values] : sweep.items()) {
    if (path == "$comment") continue;
    const SettingPath setting(path, scenario);
    within(path, [&, &listed = values] {
      if (!listed.is_array() || listed.empty()) throw Error("must be a list of values");
      for (const Json& value : listed) setting.with(scenario, value);
    });
  }
}

}  // namespace foretrace
