#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foretrace {

/// Where a value is not what its JSON Schema says. Properties that the schema does not name count,
/// too, although they are valid.
inline std::vector<std::string> against_schema(const nlohmann::json& value,
                                               const nlohmann::json& schema,
                                               const std::string& path = "$") {
  using Json = nlohmann::json;
  std::vector<std::string> wrong;
  const auto check = [&](const Json& part, const Json& of_part, const std::string& where) {
    const auto more = against_schema(part, of_part, path + where);
    wrong.insert(wrong.end(), more.begin(), more.end());
  };
  if (schema.contains("anyOf")) {
    for (const Json& one : schema["anyOf"]) {
      const auto of_one = against_schema(value, one, path);
      if (of_one.empty()) return {};
      if (wrong.empty() || of_one.size() < wrong.size()) wrong = of_one;
    }
    return wrong;
  }
  if (schema.contains("const")) {
    if (value != schema["const"]) wrong.push_back(path + ": " + value.dump());
    return wrong;
  }
  const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
  const auto is = [&](const char* type) { return std::ranges::find(types, type) != types.end(); };
  const bool fits =
      value.is_number_integer() ? is("integer") || is("number") : is(value.type_name());
  if (!fits) wrong.push_back(path + " is " + value.type_name() + ", not " + types.dump());
  if (value.is_array() && schema.contains("items"))
    for (const Json& item : value) check(item, schema["items"], "[]");
  if (value.is_array() && !schema.contains("items") && !value.empty())
    wrong.push_back(path + " has items");
  if (!value.is_object()) return wrong;
  const Json named = schema.value("properties", Json::object());
  for (const auto& [key, part] : value.items()) {
    if (named.contains(key))
      check(part, named[key], "." + key);
    else if (schema.contains("additionalProperties"))
      check(part, schema["additionalProperties"], ".*");
    else if (!named.empty())
      wrong.push_back(path + "." + key + " is unknown");
  }
  for (const Json& key : schema.value("required", Json::array()))
    if (!value.contains(key.get<std::string>()))
      wrong.push_back(path + "." + key.get<std::string>() + " is missing");
  return wrong;
}

}  // namespace foretrace
