#pragma once

// One setting as a value, and a visitor that treats all settings alike. Reading, writing, the
// schema, the help and the assignments of a command line then are each a few functions overloaded
// on the type of the setting.

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

struct Setting {
  std::string_view name;
  std::string_view help;
  SettingValue value;  ///< Never null.
  SettingLimit least{};
  SettingLimit most{};
  const std::vector<std::string_view>* options = nullptr;  ///< Options of a choice, otherwise null.
};

/// Calls visit() for every setting of an object, in its order.
class SettingVisitor : public Fields {
 public:
  virtual void visit(const Setting& setting) = 0;

  void flag(std::string_view name, bool& value, std::string_view help) final;
  void integer(std::string_view name, std::int64_t& value, std::string_view help,
               std::int64_t least, std::int64_t most) final;
  void number(std::string_view name, double& value, std::string_view help, double least,
              double most) final;
  void text(std::string_view name, std::string& value, std::string_view help) final;
  void texts(std::string_view name, std::vector<std::string>& value, std::string_view help) final;
  void choice(std::string_view name, std::string& value,
              const std::vector<std::string_view>& options, std::string_view help) final;
  void time(std::string_view name, Nanoseconds& value, std::string_view help,
            Nanoseconds least) final;
  void bytes(std::string_view name, Bytes& value, std::string_view help, Bytes least) final;
  void bandwidth(std::string_view name, Bandwidth& value, std::string_view help) final;
  void throughput(std::string_view name, Throughput& value, std::string_view help) final;
  void optional_integer(std::string_view name, std::optional<std::int64_t>& value,
                        std::string_view help, std::int64_t least) final;
  void optional_number(std::string_view name, std::optional<double>& value, std::string_view help,
                       double least) final;
  void optional_time(std::string_view name, std::optional<Nanoseconds>& value,
                     std::string_view help, Nanoseconds least) final;
  void object(std::string_view name, Described& value, std::string_view help) final;
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
