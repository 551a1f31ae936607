#pragma once

// The parts of answers as text: sentences after their headings, lists, and tables with a title.
// Text that is too long for a terminal is wrapped; empty lists and tables are left out.

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "document/words/table.h"
#include "document/words/wrapped.h"

namespace foretrace {

/// The column where sentences after a heading begin.
constexpr std::size_t kSentenceColumn = 14;

/// Writes a heading and its sentence: "Bound by      the host: ...".
void write_headed(std::ostream& out, std::string_view heading, std::string_view sentence,
                  std::size_t column = kSentenceColumn, std::size_t width = kLineWidth);

/// Writes an empty line, the title, and each line after a dash.
void write_list(std::ostream& out, std::string_view title, const std::vector<std::string>& lines);

/// Writes an empty line, the title if there is one, and the table.
void write_titled(std::ostream& out, std::string_view title, const Table& table);

}  // namespace foretrace
