#include "base/files/csv_rows.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/shown.h"
#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {

std::vector<std::string> csv_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) cells.back() += line[i++];
      if (!doubled) quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  if (quoted) throw Error("has a quoted cell without its closing quote");
  for (std::string& cell : cells) cell = text_of_csv_cell(cell);
  return cells;
}

std::size_t column_of(std::span<const std::string> heading, const std::string& name) {
  const auto found = std::ranges::find(heading, name);
  if (found == heading.end())
    throw Error(fmt::format("there is no column '{}'{}; the columns are {}", name,
                            did_you_mean(name, heading), joined(heading)));
  return static_cast<std::size_t>(found - heading.begin());
}

CsvFilter::CsvFilter(std::span<const std::string> heading, const std::vector<std::string>& only) {
  for (const std::string& condition : only) {
    const std::size_t equal = condition.find('=');
    if (equal == std::string::npos)
      throw Error(fmt::format("--only: must be COLUMN=TEXT, got '{}'", condition));
    texts_.emplace_back(column_of(heading, condition.substr(0, equal)),
                        condition.substr(equal + 1));
  }
}

bool CsvFilter::passes(std::span<const std::string> cells) const {
  return std::ranges::all_of(texts_, [&](const auto& condition) {
    return condition.first < cells.size() &&
           cells[condition.first].find(condition.second) != std::string::npos;
  });
}

}  // namespace foretrace
