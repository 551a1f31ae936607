#include "serve/csv_table.h"

#include <fmt/core.h>
#include <fstream>

#include "base/files/csv_rows.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "foretrace/units.h"

namespace foretrace::serve {

CsvRow::CsvRow(const std::vector<std::string>& heading, std::vector<std::string> cells)
    : heading_(heading), cells_(std::move(cells)) {
  if (cells_.size() != heading_.size())
    throw Error(fmt::format("must have {} cells, got {}", heading_.size(), cells_.size()));
}

const std::string& CsvRow::cell(const std::string& name) const {
  return cells_[column_of(heading_, name)];
}

double CsvRow::number(const std::string& name, double least, double most) const {
  const auto value = parse_number<double>(cell(name));
  if (!value || !(*value >= least) || *value > most)
    throw Error(fmt::format("{}: must be from {} to {}, got \"{}\"", name, to_text(least),
                            to_text(most), cell(name)));
  return *value;
}

std::int64_t CsvRow::whole(const std::string& name, std::int64_t most) const {
  const auto value = parse_number<std::int64_t>(cell(name));
  if (!value || *value < 1 || *value > most)
    throw Error(
        fmt::format("{}: must be an integer from 1 to {}, got \"{}\"", name, most, cell(name)));
  return *value;
}

void each_csv_row(const std::string& path, const std::function<void(const CsvRow&)>& visit) {
  within(path, [&] {
    std::ifstream in(path);
    if (!in) throw Error("cannot be opened");
    std::vector<std::string> heading;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty()) continue;
      within("line " + std::to_string(number), [&] {
        if (heading.empty())
          heading = csv_cells(line);
        else
          visit(CsvRow(heading, csv_cells(line)));
      });
    }
  });
}

}  // namespace foretrace::serve
