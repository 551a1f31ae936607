#include "document/words/table.h"

#include <algorithm>
#include <numeric>
#include <ostream>

#include "base/shown.h"
#include "document/words/wrapped.h"

namespace foretrace {
namespace {

bool has(const std::vector<std::size_t>& columns, std::size_t column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

bool is_left(const Table& table, std::size_t column) { return has(table.left, column); }

/// Returns the cell as code. Code cannot contain escapes, so a cell with a character that would end
/// the code or the cell becomes plain text.
std::string code_cell(const std::string& cell) {
  if (cell.empty() || cell.find_first_of("`|") != std::string::npos) return markdown_cell(cell);
  return '`' + shown(cell) + '`';
}

std::vector<std::size_t> widths(const Table& table) {
  std::vector<std::size_t> all;
  const auto widen = [&](const std::vector<std::string>& row) {
    if (all.size() < row.size()) all.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) all[i] = std::max(all[i], text_width(row[i]));
  };
  widen(table.heading);
  for (const auto& row : table.rows) widen(row);
  return all;
}

/// If the last column begins further right, it has no room to be wrapped.
constexpr std::size_t kLastColumnAtMost = 75;

/// Returns the position at which the last column begins.
std::size_t last_column(const std::vector<std::size_t>& room, std::size_t indent) {
  return std::accumulate(room.begin(), room.end() - 1, indent + 2 * (room.size() - 1));
}

Table with_shown_cells(Table table) {
  const auto show = [](std::vector<std::string>& row) {
    for (std::string& cell : row) cell = shown(cell);
  };
  show(table.heading);
  for (auto& row : table.rows) show(row);
  return table;
}

}  // namespace

void write_aligned(const Table& given, std::ostream& out, const std::string& indent) {
  const Table table = with_shown_cells(given);
  const std::vector<std::size_t> room = widths(table);
  if (room.empty()) return;
  const std::size_t last = last_column(room, indent.size());
  const bool wraps = is_left(table, room.size() - 1) && last <= kLastColumnAtMost;
  const auto write = [&](const std::vector<std::string>& row) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(room[i] - text_width(row[i]), ' ');
      if (i > 0) line += "  ";
      if (wraps && i > 0 && i + 1 == room.size())
        line += wrapped(row[i], last);
      else
        line += is_left(table, i) ? row[i] + space : space + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  if (!table.heading.empty()) write(table.heading);
  for (const auto& row : table.rows) write(row);
}

void write_markdown_table(const Table& given, std::ostream& out) {
  Table table = given;
  if (table.heading.empty() && !table.rows.empty()) table.heading.resize(table.rows[0].size());
  const auto write = [&](const std::vector<std::string>& row, bool is_heading) {
    out << '|';
    for (std::size_t i = 0; i < table.heading.size(); ++i) {
      const std::string cell = i < row.size() ? row[i] : "";
      const bool is_code = !is_heading && has(table.code, i);
      out << ' ' << (is_code ? code_cell(cell) : markdown_cell(cell)) << " |";
    }
    out << '\n';
  };
  write(table.heading, true);
  out << '|';
  for (std::size_t i = 0; i < table.heading.size(); ++i)
    out << (is_left(table, i) ? " :-- |" : " --: |");
  out << '\n';
  for (const auto& row : table.rows) write(row, false);
}

}  // namespace foretrace
