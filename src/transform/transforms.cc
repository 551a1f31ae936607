#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "transform/edit/registered.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

const TransformEntry& entry_named(std::string_view name) {
  for (const TransformEntry& entry : transforms()) {
    if (entry.name == name) return entry;
  }
  throw Error(no_such_transform(name));
}

std::unique_ptr<Transform> configured(const TransformEntry& entry, const nlohmann::json& settings) {
  std::unique_ptr<Transform> transform = entry.make();
  read_json(settings, *transform);
  return transform;
}

TransformEntry with_name(std::string_view name, std::string_view summary, TransformEntry entry) {
  entry.name = name;
  entry.summary = summary;
  return entry;
}

}  // namespace

const std::vector<TransformEntry>& transforms() {
  static const std::vector<TransformEntry> entries = {
#define TRANSFORM(name, summary) with_name(#name, summary, name##_entry()),
#include "transform/transforms.def"
#undef TRANSFORM
  };
  return entries;
}

nlohmann::json describe_transforms() {
  nlohmann::json all = nlohmann::json::array();
  for (const TransformEntry& entry : transforms()) {
    const auto transform = entry.make();
    all.push_back({{"name", entry.name},
                   {"summary", entry.summary},
                   {"assumes", entry.assumes},
                   {"synonyms", synonyms_of(entry.name)},
                   {"defaults", write_json(*transform)},
                   {"settings", json_schema(*transform).at("properties")},
                   {"order", setting_order(*transform)}});
  }
  return all;
}

std::unique_ptr<Transform> read_transform(const nlohmann::json& step) {
  if (!step.is_object()) throw Error("must be an object such as {\"use\": \"amp\"}");
  const auto use = step.find("use");
  if (use == step.end()) throw Error("use: must be given, such as {\"use\": \"amp\"}");
  if (!use->is_string()) throw Error("use: must be the name of a transform");
  const TransformEntry& entry = entry_named(use->get_ref<const std::string&>());
  nlohmann::json settings = step;
  settings.erase("use");
  settings.erase("$comment");
  return configured(entry, settings);
}

std::unique_ptr<Transform> read_transform_text(std::string_view step) {
  const std::size_t colon = step.find(':');
  const TransformEntry& entry = entry_named(step.substr(0, colon));
  return within(entry.name, [&] {
    if (colon == std::string_view::npos) return configured(entry, nlohmann::json::object());
    const std::unique_ptr<Transform> kinds = entry.make();
    return configured(entry, read_assignments(step.substr(colon + 1), *kinds));
  });
}

}  // namespace foretrace
