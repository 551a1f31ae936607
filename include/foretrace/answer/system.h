#pragma once

// The answer of `foretrace plan system`: how long a described system takes, for each row of its
// file.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace foretrace {

struct SystemRow {
  std::map<std::string, double> settings{};               ///< Set by the row, or by the search.
  double seconds = 0;                                     ///< Time of the whole system.
  std::vector<std::pair<std::string, double>> figures{};  ///< In the order of the file.
  std::size_t tasks = 0;
  std::size_t tried = 0;              ///< Points that a search tried; 0 without one.
  std::vector<std::string> failed{};  ///< Assertions that do not hold.
};

struct SystemReport {
  std::string title{};
  std::vector<SystemRow> rows{};
  std::vector<std::pair<std::string, double>> means{};  ///< Geometric means over the rows.
  std::vector<std::string> failed{};                    ///< Assertions on means that do not hold.

  bool holds() const;
};

class Document;
/// For people, in every form.
Document document_of(const SystemReport& report);
/// The object with schema "foretrace.system/1".
nlohmann::json to_json(const SystemReport& report);

}  // namespace foretrace
