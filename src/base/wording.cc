#include "base/wording.h"

#include <fmt/core.h>

#include "base/shown.h"

namespace foretrace {

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t front = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > front + 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string counted(std::int64_t count, std::string_view noun) {
  const std::string_view ending = count == 1                                     ? ""
                                  : noun.ends_with("ch") || noun.ends_with("ss") ? "es"
                                                                                 : "s";
  return fmt::format("{} {}{}", grouped(count), noun, ending);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string letters_and_digits(std::string_view text) {
  std::string kept = lower_case(text);
  std::erase_if(kept, [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')); });
  return kept;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string note_text_without_severity(const Note& note) {
  std::string text = note.text;
  if (note.count > 1 || !note.example.empty()) {
    text += " (";
    if (note.count > 1) text += counted(note.count, "time");
    if (note.count > 1 && !note.example.empty()) text += ", ";
    if (!note.example.empty()) text += (note.count > 1 ? "first: " : "") + note.example;
    text += ")";
  }
  return shown(text);
}

std::string note_text(const Note& note) {
  return fmt::format("{}: {}", to_string(note.severity), note_text_without_severity(note));
}

}  // namespace foretrace
