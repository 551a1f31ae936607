#pragma once

// Wraps sentences for a terminal: lines end before a width that most windows have, and continue
// below the column where the sentence began. Only text for people is wrapped; JSON, CSV and
// Markdown are not.
//
//     How sure      between 42.74 ms and 55.78 ms; the unmodified replay is 0.000 % off; some
//                   more that did not fit

#include <cstddef>
#include <string>
#include <string_view>

namespace foretrace {

constexpr std::size_t kLineWidth = 118;

/// Returns shown() of the sentence, which begins at column `indent`, with line ends and indents
/// instead of some spaces. A number stays with its unit, and a word that is too long for a line
/// gets its own line.
std::string wrapped(std::string_view sentence, std::size_t indent, std::size_t width = kLineWidth);

/// Returns the number of visible columns; a byte that continues a UTF-8 character takes none.
std::size_t text_width(std::string_view text);

}  // namespace foretrace
