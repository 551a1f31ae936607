#include "report/table.h"

#include <algorithm>
#include <ostream>

namespace foretrace {
namespace {

/// Characters a reader sees; a byte that continues a UTF-8 character takes no room.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_left(const Table& table, std::size_t column) {
  return std::find(table.left.begin(), table.left.end(), column) != table.left.end();
}

std::vector<std::size_t> widths(const Table& table) {
  std::vector<std::size_t> all;
  const auto widen = [&](const std::vector<std::string>& row) {
    if (all.size() < row.size()) all.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) all[i] = std::max(all[i], width(row[i]));
  };
  widen(table.heading);
  for (const auto& row : table.rows) widen(row);
  return all;
}

std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

}  // namespace

void write_aligned(const Table& table, std::ostream& out, const std::string& indent) {
  const std::vector<std::size_t> room = widths(table);
  const auto write = [&](const std::vector<std::string>& row) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(room[i] - width(row[i]), ' ');
      if (i > 0) line += "  ";
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
