#pragma once

// One setting as a value. Reading, writing, the schema, the help and the assignments of a command
// line then are each a few functions overloaded on the type of the setting.

#include <set>
#include <variant>

#include "base/wording.h"
#include "foretrace/fields.h"

namespace foretrace {

using SettingValue =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                 Nanoseconds*, Bytes*, Bandwidth*, Throughput*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::optional<Nanoseconds>*, Described*>;

/// std::monostate: no limit.
using SettingLimit = std::variant<std::monostate, std::int64_t, double, Nanoseconds, Bytes>;

enum class TextKind { text, path, name_or_path };

struct Setting {
  std::string_view name;
  std::string_view help;
  SettingValue value;  ///< Never null.
  SettingLimit least{};
  SettingLimit most{};
  const std::vector<std::string_view>* options = nullptr;  ///< Options of a choice, otherwise null.
  TextKind kind = TextKind::text;
};

using SettingNames = std::set<std::string, std::less<>>;

/// The names in `object`, without those of nested settings.
SettingNames setting_names(Described& object);

/// `there is no setting "depth"; the settings are buffers, where`, with the nearest name if one is
/// near.
std::string no_such_setting(std::string_view name, const SettingNames& known);

/// "" for no limit.
std::string to_text(const SettingLimit& limit);

}  // namespace foretrace
