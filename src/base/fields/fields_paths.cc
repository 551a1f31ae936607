#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/fields/settings.h"

namespace foretrace {
namespace {

class Rebaser final : public Fields {
 public:
  Rebaser(nlohmann::json& settings, const std::string& folder)
      : settings_(settings), folder_(folder) {}

  void visit(const Setting& setting) override {
    const auto found = settings_.find(setting.name);
    if (found == settings_.end()) return;
    if (auto* const* nested = std::get_if<Described*>(&setting.value))
      return rebase_paths(*found, **nested, folder_);
    if (setting.kind == TextKind::text || !found->is_string()) return;
    const auto text = found->get<std::string>();
    const bool is_relative = !text.empty() && !std::filesystem::path(text).is_absolute();
    if (is_relative && (setting.kind == TextKind::path || is_path(text)))
      *found = (std::filesystem::path(folder_) / text).lexically_normal().string();
  }

 private:
  nlohmann::json& settings_;
  const std::string& folder_;
};

}  // namespace

bool is_path(std::string_view name_or_path) {
  // A slash in the settings after a name does not count: "switch:bandwidth=25GB/s".
  const std::string_view name = name_or_path.substr(0, name_or_path.find(':'));
  return name.find('/') != std::string_view::npos || name_or_path.ends_with(".json");
}

void rebase_paths(nlohmann::json& settings, Described& object, const std::string& folder) {
  if (!settings.is_object() || folder.empty()) return;
  Rebaser rebaser(settings, folder);
  object.describe(rebaser);
}

}  // namespace foretrace
