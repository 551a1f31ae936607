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
};

/// A visitor of settings. `help` is one sentence without its full stop.
class Fields {
 public:
  virtual ~Fields() = default;
  virtual void flag(std::string_view name, bool& value, std::string_view help) = 0;
  virtual void integer(std::string_view name, std::int64_t& value, std::string_view help,
                       std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) = 0;
  virtual void number(std::string_view name, double& value, std::string_view help,
                      double least = std::numeric_limits<double>::lowest(),
                      double most = std::numeric_limits<double>::max()) = 0;
  virtual void text(std::string_view name, std::string& value, std::string_view help) = 0;
  /// In a file, a path is relative to that file: see rebase_paths().
  virtual void path(std::string_view name, std::string& value, std::string_view help) = 0;
  virtual void name_or_path(std::string_view name, std::string& value, std::string_view help) = 0;
  virtual void texts(std::string_view name, std::vector<std::string>& value,
                     std::string_view help) = 0;
  virtual void choice(std::string_view name, std::string& value,
                      const std::vector<std::string_view>& options, std::string_view help) = 0;
  /// In JSON a text with its unit; a bare number is an error.
  virtual void time(std::string_view name, Nanoseconds& value, std::string_view help,
                    Nanoseconds least = Nanoseconds::min()) = 0;
  virtual void bytes(std::string_view name, Bytes& value, std::string_view help,
                     Bytes least = Bytes{0}) = 0;
  virtual void bandwidth(std::string_view name, Bandwidth& value, std::string_view help) = 0;
  virtual void throughput(std::string_view name, Throughput& value, std::string_view help) = 0;
  /// Settings that may be left out: nothing, or null in JSON, means "as in the trace".
  virtual void optional_integer(std::string_view name, std::optional<std::int64_t>& value,
                                std::string_view help,
                                std::int64_t least = std::numeric_limits<std::int64_t>::min()) = 0;
  virtual void optional_number(std::string_view name, std::optional<double>& value,
                               std::string_view help,
                               double least = std::numeric_limits<double>::lowest()) = 0;
  virtual void optional_time(std::string_view name, std::optional<Nanoseconds>& value,
                             std::string_view help, Nanoseconds least = Nanoseconds::min()) = 0;
  virtual void object(std::string_view name, Described& value, std::string_view help) = 0;
};

/// Overwrites the settings that `json` mentions. Throws Error, with the place, on an unknown name
/// (with the nearest known one) or a bad value.
void read_json(const nlohmann::json& json, Described& object);

/// Whether a text is a path where a name is possible as well: it has a slash, or ends in ".json".
bool is_path(std::string_view name_or_path);

/// Makes the paths in settings of a file in `folder` relative to the working directory. Settings
/// that read_json() would refuse stay as they are.
void rebase_paths(nlohmann::json& settings, Described& object, const std::string& folder);

/// The current settings; read_json() of the result gives the same object.
nlohmann::json write_json(Described& object);

/// A JSON Schema (draft-07) for what read_json() accepts, with help, limits and defaults.
nlohmann::json json_schema(Described& object);

/// One aligned line per setting: name, default, help and limits. Nested settings as "where.name".
void write_help(Described& object, std::ostream& out);

/// Reads "buffers=2,where.name=/gemm/" into JSON for read_json(): each value is taken as the kind
/// of setting it is for. A comma inside /.../ , [...] or "..." does not separate. Throws Error.
nlohmann::json read_assignments(std::string_view text, Described& object);

}  // namespace foretrace
