#include "scenario/sweep.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "foretrace/error.h"
#include "foretrace/transform.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

struct Place {
  std::size_t step = 0;
  std::string setting;  ///< "where.name"
};

/// "transforms[1].where.name"
Place read_place(std::string_view path, std::size_t steps) {
  constexpr std::string_view kBegin = "transforms[";
  const auto wrong = [&]() {
    return Error("must be a setting such as \"transforms[0].buffers\", got \"" + std::string(path) +
                 "\"");
  };
  if (path.substr(0, kBegin.size()) != kBegin) throw wrong();
  const std::string_view rest = path.substr(kBegin.size());
  Place place;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), place.step);
  const std::string_view tail = rest.substr(static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc() || tail.size() < 3 || tail.substr(0, 2) != "].") throw wrong();
  if (place.step >= steps) {
    throw Error("there is no transforms[" + std::to_string(place.step) + "]; the scenario has " +
                std::to_string(steps));
  }
  place.setting = tail.substr(2);
  return place;
}

/// The step with one setting changed.
Json with_setting(Json step, std::string_view setting, const Json& value) {
  Json* at = &step;
  while (true) {
    if (!at->is_object()) throw Error("has no settings of its own");
    const std::size_t dot = setting.find('.');
    at = &(*at)[std::string(setting.substr(0, dot))];
    if (dot == std::string_view::npos) break;
    if (at->is_null()) *at = Json::object();
    setting.remove_prefix(dot + 1);
  }
  *at = value;
  return step;
}

}  // namespace

void check_sweep(const Json& sweep, const Json& scenario) {
  if (!sweep.is_object())
    throw Error("must be an object such as {\"transforms[0].buffers\": [1, 2, 4]}");
  const Json& steps = scenario.value("transforms", Json::array());
  for (const auto& [path, values] : sweep.items()) {
    if (path == "$comment") continue;
    const Place place = read_place(path, steps.size());
    within(path, [&, &listed = values] {
      if (!listed.is_array() || listed.empty()) throw Error("must be a list of values");
      for (const Json& value : listed) {
        read_transform(with_setting(steps[place.step], place.setting, value));
      }
    });
  }
}

}  // namespace foretrace
