#pragma once

// A number that a transform worked out beside its edits: bytes read from disk in an epoch, the
// share of misses. Reports show it, scenarios assert it as "loader.disk_bytes".

#include <string>
#include <variant>

#include "foretrace/units.h"

namespace foretrace {

struct Figure {
  std::string name;  ///< "disk_bytes": snake_case, unique in its transform.
  std::variant<double, Nanoseconds, Bytes> value;
};

/// The value with its unit, for people: "12.5 MB", "0.862".
std::string to_text(const Figure& figure);

/// The value as a plain number (nanoseconds, bytes), so that two figures of a kind compare.
double magnitude(const Figure& figure);

/// Its name in JSON, which ends in the unit: "disk_bytes", "added_time_ns".
std::string json_key(const Figure& figure);

}  // namespace foretrace
