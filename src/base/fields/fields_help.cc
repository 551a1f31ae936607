#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/fields/setting_json.h"
#include "base/fields/settings.h"
#include "base/json_text.h"

namespace foretrace {
namespace {

struct Row {
  std::string name;
  std::string value;
  std::string help;
};

template <class Value>
std::string shown_setting(Value& value) {
  const nlohmann::json json = as_json(value);
  if (json.is_null()) return "-";
  if (json.is_number_float()) return to_text(json.get<double>());
  const bool is_bare = json.is_string() && !json.get_ref<const std::string&>().empty();
  return is_bare ? json.get<std::string>() : json_line(json);
}

std::string limits(const Setting& setting) {
  if (setting.options) return fmt::format(" (one of {})", joined(*setting.options));
  const std::string least = to_text(setting.least), most = to_text(setting.most);
  if (!least.empty() && !most.empty()) return fmt::format(" ({} to {})", least, most);
  if (!least.empty()) return fmt::format(" (at least {})", least);
  if (!most.empty()) return fmt::format(" (at most {})", most);
  return {};
}

class HelpWriter final : public Fields {
 public:
  void visit(const Setting& setting) override {
    if (auto* const* nested = std::get_if<Described*>(&setting.value)) {
      const std::string outer = prefix_;
      prefix_ += std::string(setting.name) + ".";
      (*nested)->describe(*this);
      prefix_ = outer;
      return;
    }
    rows.push_back({prefix_ + std::string(setting.name), default_text(setting),
                    std::string(setting.help) + limits(setting)});
  }
  std::vector<Row> rows;

 private:
  static std::string default_text(const Setting& setting) {
    return std::visit([](auto* value) { return shown_setting(*value); }, setting.value);
  }
  std::string prefix_;
};

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

void write_help(Described& object, std::ostream& out) {
  HelpWriter writer;
  object.describe(writer);
  std::size_t names = 0, values = 0;
  for (const Row& row : writer.rows) {
    names = std::max(names, row.name.size());
    values = std::max(values, row.value.size());
  }
  for (const Row& row : writer.rows) {
    out << "  " << row.name << std::string(names - row.name.size() + 2, ' ') << row.value
        << std::string(values - row.value.size() + 2, ' ') << row.help << '\n';
  }
}

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
