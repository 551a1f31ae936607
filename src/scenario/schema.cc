#include <nlohmann/json.hpp>

#include "foretrace/report.h"
#include "foretrace/scenario.h"
#include "scenario/asserts.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

Json text(std::string_view description) {
  return {{"type", "string"}, {"description", description}};
}

/// One step, as the transform describes itself, and its name.
Json step_schema(const TransformEntry& entry) {
  Json schema = json_schema(*entry.make());
  schema["title"] = entry.name;
  schema["description"] = std::string(entry.summary) + ". " + std::string(entry.assumes);
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
  schema["description"] = "How much memory the device has, and what PyTorch's allocator is told";
  schema["properties"]["$comment"] = Json::object();
  return schema;
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
      {"version", {{"const", 1}, {"description", "Of this format"}}},
      {"extends", text("Path of a scenario, relative to this file, whose keys hold where this one "
                       "has none; its "
                       "transforms and assertions come before those of this file")},
      {"trace", text("Path of the trace, relative to this file")},
      {"machine", text("Device to predict for: its name or the path of a machine file; left out: "
                       "the one of the trace")},
      {"memory", memory_schema()},
      {"transforms",
       {{"type", "array"},
        {"description", "What is different, in order of application"},
        {"items", {{"type", "object"}, {"required", {"use"}}, {"oneOf", steps}}}}},
      {"reports",
       {{"type", "array"},
        {"items", {{"enum", report_names}}},
        {"description", "Forms of the answer"}}},
      {"sweep",
       {{"type", "object"},
        {"description", "Values to try, such as {\"transforms[0].buffers\": [1, 2, 4]}"},
        {"patternProperties",
         {{"^transforms\\[[0-9]+\\]\\..+$", {{"type", "array"}, {"minItems", 1}}}}},
        {"properties", {{"$comment", Json::object()}}},
        {"additionalProperties", false}}},
      {"assert", {{"type", "array"}, {"items", assert_schema()}}},
  };
  return {{"$schema", "http://json-schema.org/draft-07/schema#"},
          {"title", "Foretrace scenario"},
          {"description", "A question to a trace: what if ...?"},
          {"type", "object"},
          {"properties", properties},
          {"additionalProperties", false}};
}

}  // namespace foretrace
