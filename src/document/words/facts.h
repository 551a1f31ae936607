#pragma once

// The facts of a row, named once for JSON and for CSV:
//
//     row_facts(row): facts.fact("step_time_ns", row.time).fact("trust", to_string(row.trust))
//         JSON: {"step_time_ns": 5, "trust": "good"}      CSV: step_time_ns,trust / 5,good

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/json_values.h"

namespace foretrace {

class Facts {
 public:
  using Json = nlohmann::json;

  /// A fact in JSON and in CSV, where null is an empty cell.
  Facts& fact(const std::string& key, const Json& value) {
    return detail(key, value).column(key, value);
  }
  /// A fact that only JSON has.
  Facts& detail(const std::string& key, Json value);
  /// A fact that only CSV has, as JSON has it in another form.
  Facts& column(const std::string& key, const Json& value);
  /// An object in JSON, whose facts are columns of CSV with the prefix.
  Facts& object(const std::string& key, const std::string& prefix, const Facts& inner);
  /// Whether the row has the facts that follow. JSON lacks others; their cells in CSV are empty.
  Facts& when(bool has_them);

  const Json& json() const { return json_; }
  /// The line of CSV, and the one above all rows; each ends in a line break.
  std::string line() const;
  std::string heading() const;

 private:
  Json json_ = Json::object();
  std::vector<std::string> keys_, cells_;
  bool has_them_ = true;
};

/// Returns the text of a value in a cell, without quotes.
template <class Json>
std::string cell_of(const Json& value);

/// Returns a line of CSV, in which only texts with commas or quotes are quoted; a line break within
/// a text is written as \n, as simple programs take it for the end of a row.
std::string csv_line(const std::vector<std::string>& cells);

/// `facts_of` returns the Facts of a row.
template <class Rows, class FactsOf>
nlohmann::json rows_json(const Rows& rows, const FactsOf& facts_of) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& row : rows) all.push_back(facts_of(row).json());
  return all;
}

/// Rows below their heading. REQUIRES: all rows have the same columns, also a default one.
template <class Rows, class FactsOf>
void write_rows(const Rows& rows, const FactsOf& facts_of, std::ostream& out) {
  out << facts_of(rows.empty() ? typename Rows::value_type{} : rows.front()).heading();
  for (const auto& row : rows) out << facts_of(row).line();
}

}  // namespace foretrace
