#pragma once

// The answer of `foretrace plan system`: how long a described system takes, for each row of its
// file.

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace foretrace {

struct SystemRow {
  std::map<std::string, double> settings{};               ///< That the row, or the search, set.
  double seconds = 0;                                     ///< Of the whole.
  std::vector<std::pair<std::string, double>> figures{};  ///< In the order of the file.
  std::size_t tasks = 0;
  std::size_t tried = 0;              ///< Points of a search; 0 without one.
  std::vector<std::string> failed{};  ///< Assertions.
};

struct SystemReport {
  std::string title{};
  std::vector<SystemRow> rows{};
  std::vector<std::pair<std::string, double>> means{};  ///< Geometric, over the rows.
  std::vector<std::string> failed{};                    ///< Assertions about means.

  bool holds() const;
};

}  // namespace foretrace
