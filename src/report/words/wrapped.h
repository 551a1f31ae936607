#pragma once

// Sentences for a terminal: lines end before a width that most windows have, and go on below the
// place where the sentence began. Only text for people is wrapped; json, csv and markdown are not.
//
//     How sure      between 42.74 ms and 55.78 ms; the unmodified replay is 0.000 % off; some
//                   more that did not fit

#include <cstddef>
#include <string>
#include <string_view>

namespace foretrace {

constexpr std::size_t kLineWidth = 118;

/// The sentence, which begins at column `indent`, shown() with line ends and indents in place of
/// some spaces. A number stays with its unit, and a word that is too long for a line has one of its
/// own.
std::string wrapped(std::string_view sentence, std::size_t indent, std::size_t width = kLineWidth);

/// Columns a reader sees; a byte that continues a UTF-8 character takes no room.
std::size_t text_width(std::string_view text);

}  // namespace foretrace
