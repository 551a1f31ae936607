#include <fmt/core.h>

#include "base/fields/setting_json.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr const char* kTimePattern =
    "^ *-?[0-9]+(\\.[0-9]+)? *(ns|us|\u00b5s|\u03bcs|ms|s|min|h) *$";
constexpr const char* kBytesPattern = "^ *-?[0-9]+(\\.[0-9]+)? *([kK]i?|[MGTP]i?)?B *$";
constexpr const char* kBandwidthPattern =
    "^ *[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)? *([kK]i?|[MGTP]i?)?(B/s|Bps|b/s|bit/s|bps) *$";
constexpr const char* kThroughputPattern =
    "^ *[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)? *([kK]i?|[MGTP]i?)?"
    "(FLOP/s|FLOPS|FLOPs|Flop/s|OP/s|OPS) *$";

Json type_of(bool) { return {{"type", "boolean"}}; }
Json type_of(std::int64_t) { return {{"type", "integer"}}; }
Json type_of(double) { return {{"type", "number"}}; }
Json type_of(const std::string&) { return {{"type", "string"}}; }
Json type_of(const std::vector<std::string>&) {
  return {{"type", "array"}, {"items", {{"type", "string"}}}};
}
Json type_of(Nanoseconds) { return {{"type", "string"}, {"pattern", kTimePattern}}; }
Json type_of(Bytes) { return {{"type", "string"}, {"pattern", kBytesPattern}}; }
Json type_of(Bandwidth) { return {{"type", "string"}, {"pattern", kBandwidthPattern}}; }
Json type_of(Throughput) { return {{"type", "string"}, {"pattern", kThroughputPattern}}; }
Json type_of(Described& value) { return json_schema(value); }
template <class Value>
Json type_of(const std::optional<Value>&) {
  Json schema = type_of(Value{});
  schema["type"] = Json::array({schema.at("type"), "null"});
  return schema;
}

/// Adds a limit to the schema. A schema can compare numbers but not texts with units; those limits
/// are put into the description.
void add_limit(const SettingLimit& limit, const char* keyword, const char* words, Json& schema,
               std::string& description) {
  if (const auto* whole = std::get_if<std::int64_t>(&limit)) {
    schema[keyword] = *whole;
  } else if (const auto* number = std::get_if<double>(&limit)) {
    schema[keyword] = *number;
  } else if (!std::holds_alternative<std::monostate>(limit)) {
    description += fmt::format(" ({} {})", words, to_text(limit));
  }
}

class SchemaWriter final : public Fields {
 public:
  void visit(const Setting& setting) override {
    Json schema = std::visit([](auto* value) { return type_of(*value); }, setting.value);
    std::string description(setting.help);
    add_limit(setting.least, "minimum", "at least", schema, description);
    add_limit(setting.most, "maximum", "at most", schema, description);
    schema["description"] = description;
    if (setting.options) schema["enum"] = *setting.options;
    if (!std::holds_alternative<Described*>(setting.value)) {
      schema["default"] = std::visit([](auto* value) { return as_json(*value); }, setting.value);
    }
    properties[std::string(setting.name)] = std::move(schema);
    if (setting.form.is_required) required.push_back(setting.name);
  }
  Json properties = Json::object();
  Json required = Json::array();
};

class Writer final : public Fields {
 public:
  void visit(const Setting& setting) override {
    json[std::string(setting.name)] =
        std::visit([](auto* value) { return as_json(*value); }, setting.value);
  }
  nlohmann::json json = nlohmann::json::object();
};

}  // namespace

Json json_schema(Described& object) {
  SchemaWriter writer;
  object.describe(writer);
  Json schema = {{"type", "object"},
                 {"properties", std::move(writer.properties)},
                 {"additionalProperties", false}};
  if (!writer.required.empty()) schema["required"] = std::move(writer.required);
  return schema;
}

nlohmann::json write_json(Described& object) {
  Writer writer;
  object.describe(writer);
  return std::move(writer.json);
}

}  // namespace foretrace
