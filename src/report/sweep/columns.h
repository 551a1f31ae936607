#pragma once

// The columns of an answer to one of many questions, each described once: the key in JSON, the
// heading and cells in CSV, and for those with a title a column of tables and an axis of pages.
// Adding one is a member of SweepPoint and a line of the list in columns.cc.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/sweep.h"

namespace foretrace {

struct PointColumn {
  using Json = nlohmann::ordered_json;

  const char* key;  ///< With its unit: "step_time_ns".
  bool (*is_asked)(const SweepHeader& header);
  Json (*value)(const SweepPoint& point);              ///< Null where the answer does not have it.
  void (*read)(const Json& value, SweepPoint& point);  ///< Throws Error.
  const char* title = "";                              ///< Empty: only files have it.
};

/// The columns that answers of this header have, in their order.
std::vector<const PointColumn*> columns_of(const SweepHeader& header);
/// The ones with a title and a value in at least one of the points.
std::vector<const PointColumn*> table_columns(const SweepReport& report);

/// A number in the unit that its key ends in, for people; "-" for null.
std::string value_text(std::string_view key, const PointColumn::Json& value);
/// "bytes", "ns", or empty for a plain number.
std::string_view unit_of_key(std::string_view key);
std::string_view without_unit(std::string_view key);

/// An answer as an object.
PointColumn::Json point_json(const SweepHeader& header, const SweepPoint& point);

/// Without steps, a time is that of the whole recording.
std::string column_title(const PointColumn& column, const SweepHeader& header);

}  // namespace foretrace
