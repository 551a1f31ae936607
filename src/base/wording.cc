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

std::string noun_for(std::int64_t count, std::string_view noun) {
  constexpr std::string_view kVowels = "aeiou";
  if (count == 1) return std::string(noun);
  if (noun.ends_with("ch") || noun.ends_with("ss")) return fmt::format("{}es", noun);
  if (noun.size() > 1 && noun.ends_with('y') && kVowels.find(noun[noun.size() - 2]) == kVowels.npos)
    return fmt::format("{}ies", noun.substr(0, noun.size() - 1));
  return fmt::format("{}s", noun);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}", grouped(count), noun_for(count, noun));
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
