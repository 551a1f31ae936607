#pragma once

// How a struct declares its settings to the rest of the program. A struct lists its fields once, in
// describe(); reading them from JSON, checking them, explaining them in --help, writing the JSON
// Schema and echoing the effective settings are visitors of that one list, so they cannot disagree.

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

class Fields;

/// An object with settings. A default-constructed object has the defaults.
class Described {
 public:
  virtual ~Described() = default;

  /// Names every setting, in the order in which help should show them. It may not do anything else:
  /// it is also called on objects that will never be used.
  virtual void describe(Fields& fields) = 0;

  /// Throws Error, naming the setting, on values that limits alone do not rule out. read_json()
  /// calls it.
  virtual void check() const {}
};

struct Setting;

/// How a setting is given where people write words, beside its name.
struct SettingForm {
  /// The name of a value: "FILE", "TIME", "a|b"; empty: by the type of the setting. "OUT" is a file
  /// that is written, "TRACE" a recording; "NAME", "WORD" and "TRANSFORM" are never paths.
  std::string_view value = {};
  std::string_view letter = {};  ///< A short name, such as "o".
  bool is_positional = false;    ///< Given by its place instead of by its name.
  bool is_required = false;
};

/// A visitor of settings. `help` is one sentence without its full stop.
class Fields {
 public:
  virtual ~Fields() = default;
  /// Applies to the next setting.
  Fields& as(const SettingForm& form) {
    next_ = form;
    return *this;
  }
  void flag(std::string_view name, bool& value, std::string_view help);
  void integer(std::string_view name, std::int64_t& value, std::string_view help,
               std::int64_t least = std::numeric_limits<std::int64_t>::min(),
               std::int64_t most = std::numeric_limits<std::int64_t>::max());
  void number(std::string_view name, double& value, std::string_view help,
              double least = std::numeric_limits<double>::lowest(),
              double most = std::numeric_limits<double>::max());
  void text(std::string_view name, std::string& value, std::string_view help);
  /// In a file, a path is relative to that file: see rebase_paths().
  void path(std::string_view name, std::string& value, std::string_view help);
  void name_or_path(std::string_view name, std::string& value, std::string_view help);
  void texts(std::string_view name, std::vector<std::string>& value, std::string_view help);
  void choice(std::string_view name, std::string& value,
              const std::vector<std::string_view>& options, std::string_view help);
  /// In JSON a text with its unit; a bare number is an error. At most 1000 hours and 2^58 bytes, so
  /// that sums fit.
  void time(std::string_view name, Nanoseconds& value, std::string_view help,
            Nanoseconds least = Nanoseconds::min());
  void bytes(std::string_view name, Bytes& value, std::string_view help, Bytes least = Bytes{0});
  void bandwidth(std::string_view name, Bandwidth& value, std::string_view help);
  void throughput(std::string_view name, Throughput& value, std::string_view help);
  /// Settings that may be left out: nothing, or null in JSON, means "as in the trace".
  void optional_integer(std::string_view name, std::optional<std::int64_t>& value,
                        std::string_view help,
                        std::int64_t least = std::numeric_limits<std::int64_t>::min());
  void optional_number(std::string_view name, std::optional<double>& value, std::string_view help,
                       double least = std::numeric_limits<double>::lowest());
  void optional_time(std::string_view name, std::optional<Nanoseconds>& value,
                     std::string_view help, Nanoseconds least = Nanoseconds::min());
  void optional_bytes(std::string_view name, std::optional<Bytes>& value, std::string_view help,
                      Bytes least = Bytes{0});
  void optional_bandwidth(std::string_view name, std::optional<Bandwidth>& value,
                          std::string_view help);
  void object(std::string_view name, Described& value, std::string_view help);

  /// Called for every setting, in their order.
  virtual void visit(const Setting& setting) = 0;

 private:
  void visit_next(Setting setting);

  SettingForm next_;
};

/// Overwrites the settings that `json` mentions. Throws Error, with the place, on an unknown name
/// (with the nearest known one), a bad value or a required setting that is missing.
void read_json(const nlohmann::json& json, Described& object);

/// Whether a text is a path where a name is possible as well: it has a slash in front of any colon,
/// or ends in ".json".
bool is_path(std::string_view name_or_path);

/// Makes the paths in settings of a file in `folder` relative to the working directory. Settings
/// that read_json() would refuse stay as they are.
void rebase_paths(nlohmann::json& settings, Described& object, const std::string& folder);

/// The current settings; read_json() of the result gives the same object.
nlohmann::json write_json(Described& object);

/// A JSON Schema (draft-07) for what read_json() accepts, with help, limits and defaults.
nlohmann::json json_schema(Described& object);

/// The names of the settings in their order, without those of nested objects.
std::vector<std::string> setting_order(Described& object);

/// One aligned line per setting: name, default, help and limits. Nested settings as "where.name".
void write_help(Described& object, std::ostream& out);

/// Reads "buffers=2,where.name=/gemm/" into JSON for read_json(): each value is taken as the kind
/// of setting it is for. A comma inside /.../ , [...] or "..." does not separate. Throws Error.
nlohmann::json read_assignments(std::string_view text, Described& object);

}  // namespace foretrace
