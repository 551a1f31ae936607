#pragma once

// One setting as a value, so that reading, writing, the schema, the help and command line
// assignments are each a few functions overloaded on the type of the setting.

#include <set>
#include <variant>

#include "base/wording.h"
#include "foretrace/fields.h"

namespace foretrace {

using SettingValue =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                 Nanoseconds*, Bytes*, Bandwidth*, Throughput*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::optional<Nanoseconds>*, std::optional<Bytes>*,
                 std::optional<Bandwidth>*, Described*>;

/// std::monostate means no limit.
using SettingLimit = std::variant<std::monostate, std::int64_t, double, Nanoseconds, Bytes>;

enum class TextKind { text, path, name_or_path };

struct Setting {
  std::string_view name;
  std::string_view help;
  SettingValue value;  ///< Never null.
  SettingLimit least{};
  SettingLimit most{};
  /// Options of a choice; otherwise nullptr.
  const std::vector<std::string_view>* options = nullptr;
  TextKind kind = TextKind::text;
  SettingForm form{};
};

/// Reads a value that was written as words, as read_assignments() does, except that each text of a
/// list is one entry as it is. Throws Error, without the name of the setting.
void read_words(const std::vector<std::string>& words, const Setting& setting);
/// Reads a value. Throws Error, without the name of the setting.
void read_setting(const nlohmann::json& value, const Setting& setting);

using SettingNames = std::set<std::string, std::less<>>;

/// The names in `object`, without those of nested settings.
SettingNames setting_names(Described& object);

/// Returns `there is no setting "depth"; the settings are buffers, where`, with a suggestion if a
/// name is similar.
std::string no_such_setting(std::string_view name, const SettingNames& known);

/// Returns "" for no limit.
std::string to_text(const SettingLimit& limit);

}  // namespace foretrace
