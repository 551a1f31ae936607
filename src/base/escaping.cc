#include "base/escaping.h"

#include <algorithm>
#include <cstdint>

namespace foretrace {
namespace {

struct Range {
  char32_t first, last;
};

/// Control characters, marks that reverse the order of letters, and characters without width:
/// hidden in a name, they make two names look the same, or hide a command from a comparison that
/// skips them.
constexpr Range kUnsafe[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},      {0xad, 0xad},     {0x61c, 0x61c},   {0x115f, 0x1160},
    {0x17b4, 0x17b5},   {0x180e, 0x180e},  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0xfffe, 0xffff},
    {0x1bca0, 0x1bca3}, {0xe0000, 0xe0fff}};

/// Characters, besides the ASCII blank, that trimming removes from the start of a line.
constexpr Range kBlanks[] = {{0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
                             {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

template <std::size_t size>
bool is_in(const Range (&ranges)[size], char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return range.first <= code && code <= range.last; });
}

void append_hex(std::string_view prefix, std::uint32_t value, int digits, std::string& to) {
  to += prefix;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    to += "0123456789abcdef"[value >> shift & 15U];
}

/// Escapes as JSON does; a character beyond 16 bits becomes two surrogates.
void append_escape(char32_t code, std::string& to) {
  if (code == '\n') {
    to += "\\n";
  } else if (code == '\r') {
    to += "\\r";
  } else if (code == '\t') {
    to += "\\t";
  } else if (code > 0xffff) {
    append_hex("\\u", 0xd800 + ((code - 0x10000) >> 10U), 4, to);
    append_hex("\\u", 0xdc00 + (code & 0x3ffU), 4, to);
  } else {
    append_hex("\\u", code, 4, to);
  }
}

/// Length in bytes of the character that begins with `lead`; 1 if none does.
std::size_t length_of(unsigned char lead) {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 1;
}

constexpr char32_t kNoCharacter = 0xffffffff;

/// Decodes a character, or returns kNoCharacter. REQUIRES: the length fits the first byte, and all
/// other bytes are 0x80 to 0xbf.
char32_t decoded(std::string_view bytes) {
  if (bytes.size() == 1) return kNoCharacter;
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  char32_t code = static_cast<unsigned char>(bytes[0]) & (0xffU >> (bytes.size() + 1));
  for (const char c : bytes.substr(1)) code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast[bytes.size()] || is_surrogate || code > 0x10ffff ? kNoCharacter : code;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

bool Escaping::is_harmless(char c) const {
  return line_ == Line::goes_on && hashes_ == 0 && c >= ' ' && c <= '~' && c != '#';
}

void Escaping::add(std::string_view text, std::string& to) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    if (pending_.empty()) {
      while (end < text.size() && is_harmless(text[end])) ++end;
    }
    to += text.substr(at, end - at);
    at = end;
    if (at == text.size()) return;
    const char c = text[at++];
    const bool goes_on = (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
    if (!pending_.empty() && !goes_on) this->end(to);
    static_cast<unsigned char>(c) < 0x80 ? add_ascii(c, to) : add_wide(c, to);
  }
}

void Escaping::end(std::string& to) {
  for (const char c : pending_) append_hex("\\x", static_cast<unsigned char>(c), 2, to);
  if (!pending_.empty()) line_ = Line::goes_on, hashes_ = 0;
  pending_.clear();
}

/// Returns whether a build server would recognize a command that ends with `c`; tracks the
/// characters before it.
bool Escaping::is_end_of_command(char c) {
  const bool is_second_colon = line_ == Line::has_colon && c == ':';
  const bool is_bracket = hashes_ == 2 && c == '[';
  if (line_ == Line::begins && c == ':') {
    line_ = Line::has_colon;
  } else if (line_ != Line::begins || (c != ' ' && c != '\t')) {
    line_ = Line::goes_on;
  }
  if (c == '#') {
    hashes_ = std::min(hashes_ + 1, 2);
  } else if (hashes_ < 2 || !is_letter(c)) {
    hashes_ = 0;
  }
  return (is_second_colon && commands_ == Commands::escaped) ||
         (is_bracket && commands_ != Commands::stay);
}

void Escaping::add_ascii(char c, std::string& to) {
  const bool is_command = is_end_of_command(c);
  const bool breaks = c == '\n' || c == '\t';
  if (breaks && line_breaks_ == LineBreaks::stay) {
    if (c == '\n') line_ = Line::begins;
    to += c;
  } else if (is_command || c < ' ' || c == 0x7f) {
    append_escape(static_cast<unsigned char>(c), to);
  } else {
    to += c;
  }
}

void Escaping::add_wide(char c, std::string& to) {
  pending_ += c;
  if (pending_.size() < length_of(static_cast<unsigned char>(pending_[0]))) return;
  const char32_t code = decoded(pending_);
  if (code == kNoCharacter) return end(to);
  if (is_in(kUnsafe, code)) {
    append_escape(code, to);
  } else {
    to += pending_;
  }
  pending_.clear();
  hashes_ = 0;
  if (line_ != Line::begins || !is_in(kBlanks, code)) line_ = Line::goes_on;
}

}  // namespace foretrace
