#include "document/words/text_parts.h"

#include <algorithm>
#include <ostream>

#include "document/words/wrapped.h"

namespace foretrace {

void write_headed(std::ostream& out, std::string_view heading, std::string_view sentence,
                  std::size_t column, std::size_t width) {
  out << heading << std::string(column - std::min(column, heading.size()), ' ')
      << wrapped(sentence, column, width) << '\n';
}

void write_list(std::ostream& out, std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out << '\n' << title << '\n';
  for (const std::string& line : lines) out << "  - " << wrapped(line, 4) << '\n';
}

void write_titled(std::ostream& out, std::string_view title, const Table& table) {
  if (table.rows.empty()) return;
  out << '\n';
  if (!title.empty()) out << title << '\n';
  write_aligned(table, out, "  ");
}

}  // namespace foretrace
