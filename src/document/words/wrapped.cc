#include "document/words/wrapped.h"

#include <algorithm>
#include <cctype>

#include "base/shown.h"

namespace foretrace {
namespace {

/// The longest word that counts as a unit; "ms", "GB/s" and "%" are units.
constexpr std::size_t kLongestUnit = 4;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Whether a line may end at this space.
bool may_end_at(std::string_view text, std::size_t space) {
  if (space == 0 || !is_digit(text[space - 1])) return true;
  const std::string_view rest = text.substr(space + 1);
  return rest.substr(0, rest.find_first_of(" ,;)")).size() > kLongestUnit;
}

/// Returns the end of the next piece that must stay on one line.
std::size_t end_of_piece(std::string_view text, std::size_t from) {
  std::size_t end = text.find(' ', from);
  while (end != text.npos && !may_end_at(text, end)) end = text.find(' ', end + 1);
  return std::min(end, text.size());
}

}  // namespace

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string wrapped(std::string_view sentence, std::size_t indent, std::size_t width) {
  const std::string text = shown(sentence);
  std::string lines;
  std::size_t column = indent;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = end_of_piece(text, from);
    const std::string_view piece = std::string_view(text).substr(from, end - from);
    if (from > 0 && column + 1 + text_width(piece) > width) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (from > 0) {
      lines += ' ';
      ++column;
    }
    lines += piece;
    column += text_width(piece);
    from = end + 1;
  }
  return lines;
}

}  // namespace foretrace
