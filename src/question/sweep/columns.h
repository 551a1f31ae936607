#pragma once

// The columns of an answer to one of many questions, each described once: the key in JSON, and the
// heading and the cells in CSV. A column with a title is also a column of tables and an axis on
// pages. To add one that follows from members of SweepPoint, add a line to the list in columns.cc;
// for another, also a member, and its value in the answers of ask/many (answers.cc, structure.cc).

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/sweep.h"

namespace foretrace {

struct PointColumn {
  using Json = nlohmann::ordered_json;

  const char* key;  ///< The name with the unit, such as "step_time_ns".
  bool (*is_asked)(const SweepHeader& header);
  Json (*value)(const SweepPoint& point);              ///< Null if the answer lacks it.
  void (*read)(const Json& value, SweepPoint& point);  ///< Throws Error.
  const char* title = "";                              ///< Empty: only files have this column.
};

/// Returns the columns of answers with this header, in their order.
std::vector<const PointColumn*> columns_of(const SweepHeader& header);
/// Returns the columns that have a title and, in at least one point, a value.
std::vector<const PointColumn*> table_columns(const SweepReport& report);

/// Formats a number for people, in the unit that its key ends in. Returns "-" for null.
std::string value_text(std::string_view key, const PointColumn::Json& value);
/// Returns "bytes", "ns", or an empty text for a plain number.
std::string_view unit_of_key(std::string_view key);
std::string_view without_unit(std::string_view key);

/// Returns an answer as a JSON object.
PointColumn::Json point_json(const SweepHeader& header, const SweepPoint& point);

/// Returns the title of a column. In a trace without steps, a time is that of the whole recording.
std::string column_title(const PointColumn& column, const SweepHeader& header);

/// Returns readable names for the settings of a sweep, in their order: "transforms[1].factor"
/// becomes "factor of scale (launch)", unless another setting would have the same name.
std::vector<std::string> setting_labels(const SweepHeader& header);

}  // namespace foretrace
