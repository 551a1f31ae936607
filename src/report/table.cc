#include "report/table.h"

#include <algorithm>
#include <numeric>
#include <ostream>

#include "report/wrapped.h"

namespace foretrace {
namespace {

bool is_left(const Table& table, std::size_t column) {
  return std::find(table.left.begin(), table.left.end(), column) != table.left.end();
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

/// A last column beyond this has no room to be wrapped in.
constexpr std::size_t kLastColumnAtMost = 75;

/// Where the last column begins.
std::size_t last_column(const std::vector<std::size_t>& room, std::size_t indent) {
  return std::accumulate(room.begin(), room.end() - 1, indent + 2 * (room.size() - 1));
}

std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

}  // namespace

void write_aligned(const Table& table, std::ostream& out, const std::string& indent) {
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

void write_markdown_table(const Table& table, std::ostream& out) {
  const auto write = [&](const std::vector<std::string>& row) {
    out << '|';
    for (const std::string& cell : row) out << ' ' << escaped(cell) << " |";
    out << '\n';
  };
  write(table.heading);
  out << '|';
  for (std::size_t i = 0; i < table.heading.size(); ++i)
    out << (is_left(table, i) ? " :-- |" : " --: |");
  out << '\n';
  for (const auto& row : table.rows) write(row);
}

}  // namespace foretrace
