#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "foretrace/scenario.h"
#include "scenario/asserts.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

Json text(std::string_view description) {
  return {{"type", "string"}, {"description", description}};
}

Json count(std::string_view description) {
  return {{"type", "number"}, {"exclusiveMinimum", 0}, {"description", description}};
}

/// Returns the schema of a step: the transform's own settings, and its name.
Json step_schema(const TransformEntry& entry) {
  Json schema = json_schema(*entry.make());
  schema["title"] = entry.name;
  schema["description"] = fmt::format("{}. {}", entry.summary, entry.assumes);
  schema["properties"]["use"] = {{"const", entry.name}};
  schema["properties"]["$comment"] = Json::object();
  schema["required"] = {"use"};
  return schema;
}

Json assert_schema() {
  Json properties = {{"$comment", Json::object()}};
  for (const std::string_view name : assert_names()) {
    properties[std::string(name)] = {{"type", "string"}, {"pattern", "^ *(<=|>=|<|>) *[^ ].*$"}};
  }
  return {
      {"type", "object"},
      {"description", "What the prediction must satisfy, such as {\"step_time\": \"<= 120ms\"}"},
      {"minProperties", 1},
      {"properties", properties},
      {"patternProperties",
       {{"^[a-z][a-z0-9_]*\\.[a-z][a-z0-9_]*$",
         {{"type", "string"},
          {"pattern", "^ *(<=|>=|<|>) *[^ ].*$"},
          {"description", "A figure of a transform, such as loader.disk_bytes"}}}}},
      {"additionalProperties", false}};
}

Json memory_schema() {
  AllocatorSettings settings;
  Json schema = json_schema(settings);
  schema["description"] = "Memory of the device, and settings of PyTorch's allocator";
  schema["properties"]["$comment"] = Json::object();
  return schema;
}

/// A list, or a range with optional steps.
Json values_schema() {
  const Json range = {
      {"type", "string"},
      {"minLength", 1},
      {"description",
       "\"1,2,4\", \"0..16\", \"8..64/+8\", \"1..64/x2\", \"0.5..1/10\" (in ten steps), "
       "\"8GB..40GB/8\""}};
  const Json properties = {{"range", range}, {"scale", {{"enum", {"linear", "log"}}}}};
  return {{"anyOf",
           {{{"type", "array"}, {"minItems", 1}},
            range,
            {{"type", "object"},
             {"properties", properties},
             {"required", {"range"}},
             {"additionalProperties", false}}}}};
}

/// Settings of steps and of memory by path, and values of trace and machine.
Json swept_settings() {
  const Json names = {{"type", "array"}, {"minItems", 1}, {"items", {{"type", "string"}}}};
  return {
      {"type", "object"},
      {"properties", {{"$comment", Json::object()}, {"machine", names}, {"trace", names}}},
      {"patternProperties", {{"^(transforms\\[[0-9]+\\]|[a-z][a-z0-9_]*)\\..+$", values_schema()}}},
      {"additionalProperties", false}};
}

Json sweep_schema() {
  Json by_path = swept_settings();
  by_path["title"] = "Every combination of values";
  Json settings = swept_settings();
  settings["minProperties"] = 1;
  const Json whole = {{"type", "integer"}, {"minimum", 0}};
  const Json samples = {{"type", "integer"},
                        {"minimum", 1},
                        {"description", "For random and halton: number of points"}};
  Json chosen = {
      {"type", "object"},
      {"title", "A sweep with a method"},
      {"properties",
       {{"$comment", Json::object()},
        {"method",
         {{"enum", {"grid", "zip", "random", "halton"}},
          {"description",
           "grid: every combination; zip: all first values together, then all "
           "second ones; random, halton: drawn points"}}},
        {"samples", samples},
        {"seed", whole},
        {"scale", {{"enum", {"linear", "log"}}, {"description", "How ranges are spaced"}}},
        {"settings", settings}}},
      {"required", {"settings"}},
      {"additionalProperties", false}};
  return {
      {"description",
       "Settings to vary with `foretrace sweep`, such as {\"transforms[0].buffers\": [1, 2, 4], "
       "\"loader.workers\": \"0..16\"}"},
      {"anyOf", {by_path, chosen}}};
}

/// Lists of alternatives, each a part of a scenario.
Json matrix_schema() {
  const auto as_in_scenario = [](const std::string& key) {
    return Json{{"$ref", "#/properties/" + key}};
  };
  const Json part = {{"type", "object"},
                     {"properties",
                      {{"$comment", Json::object()},
                       {"name", {{"type", "string"}, {"minLength", 1}}},
                       {"machine", {{"type", "string"}}},
                       {"trace", {{"type", "string"}}},
                       {"memory", as_in_scenario("memory")},
                       {"transforms", as_in_scenario("transforms")},
                       {"assert", as_in_scenario("assert")}}},
                     {"additionalProperties", false}};
  const Json named = {{"anyOf", {{{"type", "string"}}, part}}};
  const auto list_of = [](const Json& items) {
    return Json{{"type", "array"}, {"minItems", 1}, {"items", items}};
  };
  return {{"type", "object"},
          {"description",
           "Alternatives to try, each applied on top of the scenario as if it extended it; "
           "`foretrace sweep` evaluates every combination"},
          {"properties",
           {{"$comment", Json::object()}, {"machine", list_of(named)}, {"trace", list_of(named)}}},
          {"additionalProperties", list_of(part)}};
}

}  // namespace

Json scenario_schema() {
  Json steps = Json::array();
  for (const TransformEntry& entry : transforms()) steps.push_back(step_schema(entry));
  Json report_names = Json::array();
  for (const ReportEntry& entry : reports()) report_names.push_back(entry.name);

  const Json properties = {
      {"$schema", {{"type", "string"}}},
      {"$comment", Json::object()},
      {"version", {{"const", 1}, {"description", "Version of this format"}}},
      {"extends",
       text("Path of a scenario, relative to this file; its keys apply where this one has none, "
            "and its transforms and assertions come before those of this file")},
      {"trace", text("Path of the trace, relative to this file")},
      {"machine", text("Device to predict for: its name or the path of a machine file; by default "
                       "that of the trace")},
      {"memory", memory_schema()},
      {"samples_per_step", count("Samples in a recorded step, for rates")},
      {"tokens_per_step", count("Tokens in a recorded step, for rates")},
      {"transforms",
       {{"type", "array"},
        {"description", "Changes, in order of application"},
        {"items", {{"type", "object"}, {"required", {"use"}}, {"oneOf", steps}}}}},
      {"reports",
       {{"type", "array"},
        {"items", {{"enum", report_names}}},
        {"description", "Reports to produce"}}},
      {"sweep", sweep_schema()},
      {"matrix", matrix_schema()},
      {"assert", {{"type", "array"}, {"items", assert_schema()}}},
  };
  return {{"$schema", "http://json-schema.org/draft-07/schema#"},
          {"title", "Foretrace scenario"},
          {"description", "A question about a trace: what if ...?"},
          {"type", "object"},
          {"properties", properties},
          {"additionalProperties", false}};
}

}  // namespace foretrace
