#include "network/nccl/measured.h"

#include <algorithm>
#include <fmt/core.h>
#include <fstream>
#include <set>
#include <sstream>

#include "base/files/csv_rows.h"
#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

template <class Number>
bool read_number(const std::string& text, Number& value) {
  const auto number = parse_number<Number>(text);
  if (number) value = *number;
  return number.has_value();
}

class CsvRows {
 public:
  CsvRows(const std::string& heading, const RowFilter& only)
      : heading_(csv_cells(heading)), filter_(heading_, only) {
    const auto column = [&](const char* name) { return column_of(heading_, name); };
    collective_ = column("collective"), bytes_ = column("bytes"), time_ = column("time_us");
    gpus_ = column("gpus"), nodes_ = column("nodes");
  }

  void read(const std::string& line, std::vector<MeasuredCollective>& rows) const {
    const std::vector<std::string> cells = csv_cells(line);
    if (cells.size() != heading_.size())
      throw Error(fmt::format("must have {} cells, as the heading has, got {}", heading_.size(),
                              cells.size()));
    if (!filter_.passes(cells)) return;
    MeasuredCollective row;
    row.operation = read_operation(cells[collective_]);
    if (!read_number(cells[bytes_], row.bytes.count) || !read_number(cells[time_], row.us) ||
        !read_number(cells[gpus_], row.ranks))
      throw Error("bytes, time_us and gpus must be numbers");
    // An empty cell means one host, or one NVLink domain.
    if (!cells[nodes_].empty() && !read_number(cells[nodes_], row.nodes))
      throw Error(fmt::format("nodes must be a number, got '{}'", cells[nodes_]));
    if (row.bytes.count > 0 && row.us > 0 && row.ranks > 0 && row.nodes > 0) rows.push_back(row);
  }

 private:
  std::vector<std::string> heading_;
  CsvFilter filter_;
  std::size_t collective_ = 0, bytes_ = 0, time_ = 0, gpus_ = 0, nodes_ = 0;
};

/// The text that nccl-tests prints: comments that list the ranks, then a line for each size.
class PerfRows {
 public:
  explicit PerfRows(Operation operation) : operation_(operation) {}

  void read(const std::string& line, std::vector<MeasuredCollective>& rows) {
    std::istringstream words(line);
    std::vector<std::string> cells;
    for (std::string word; words >> word;) cells.push_back(word);
    if (cells.empty()) return;
    if (cells[0][0] == '#') return read_comment(cells);
    // The columns are size count type [redop root] time algbw busbw ...: the time is the first cell
    // with a decimal point.
    const auto time = std::find_if(cells.begin(), cells.end(), [](const std::string& cell) {
      return cell.find('.') != std::string::npos;
    });
    MeasuredCollective row{.operation = operation_};
    if (time == cells.end() || !read_number(cells[0], row.bytes.count) ||
        !read_number(*time, row.us))
      return;
    if (ranks_ == 0) throw Error("must list the ranks before the first size, as nccl-tests does");
    row.ranks = ranks_;
    row.nodes = static_cast<std::uint32_t>(std::max<std::size_t>(1, hosts_.size()));
    if (row.bytes.count > 0 && row.us > 0) rows.push_back(row);
  }

 private:
  void read_comment(const std::vector<std::string>& cells) {
    const auto on = std::find(cells.begin(), cells.end(), "on");
    if (cells.size() > 2 && cells[1] == "Rank" && on != cells.end() && on + 1 != cells.end()) {
      ++ranks_;
      hosts_.insert(*(on + 1));
    }
    if (cells.size() > 4 && cells[1] == "Collective" && cells[2] == "test") {
      std::string name = cells[4];
      if (name.ends_with("_perf")) name.resize(name.size() - 5);
      operation_ = read_operation(name);
    }
  }

  Operation operation_;
  std::uint32_t ranks_ = 0;
  std::set<std::string> hosts_;
};

}  // namespace

std::vector<MeasuredCollective> read_measured(std::istream& in, Operation operation,
                                              const RowFilter& only) {
  std::vector<MeasuredCollective> rows;
  std::string line;
  std::int64_t number = 0;
  std::unique_ptr<CsvRows> table;
  PerfRows perf(operation);
  while (std::getline(in, line)) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    within("line " + std::to_string(number), [&] {
      if (number == 1 && line.find(',') != std::string::npos && line[0] != '#')
        table = std::make_unique<CsvRows>(line, only);
      else if (table)
        table->read(line, rows);
      else
        perf.read(line, rows);
    });
  }
  if (rows.empty())
    throw Error(
        fmt::format("has no measured collective{}", only.empty() ? "" : " that passes --only"));
  return rows;
}

std::vector<MeasuredCollective> read_measured_file(const std::string& path, Operation operation,
                                                   const RowFilter& only) {
  return within(path, [&] {
    std::ifstream in(path);
    if (!in) throw Error("cannot be read");
    return read_measured(in, operation, only);
  });
}

}  // namespace foretrace
