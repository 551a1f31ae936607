#include "import/scan/json_scan.h"

namespace foretrace {

namespace {

constexpr std::uint32_t kReplacement = 0xfffd;

/// The value of four hexadecimal digits, or -1 if there are fewer.
std::int32_t hex4(const char* at, const char* end) {
  if (end - at < 4) return -1;
  std::int32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/// Decodes the digits after "\u", and the second half of a surrogate pair, and moves `at` past
/// them.
std::uint32_t decode_unicode(const char*& at, const char* end) {
  const std::int32_t first = hex4(at, end);
  if (first < 0) return kReplacement;
  at += 4;
  const auto code = static_cast<std::uint32_t>(first);
  if (code < 0xd800 || code > 0xdfff) return code;
  if (code > 0xdbff || end - at < 6 || at[0] != '\\' || at[1] != 'u') return kReplacement;
  const std::int32_t second = hex4(at + 2, end);
  if (second < 0xdc00 || second > 0xdfff) return kReplacement;
  at += 6;
  return 0x10000 + ((code - 0xd800) << 10U) + (static_cast<std::uint32_t>(second) - 0xdc00);
}

/// Decodes the escape sequence after a backslash and moves `at` past it.
void append_escape(std::string& out, const char*& at, const char* end) {
  const char c = *at++;
  switch (c) {
    case 'n':
      out += '\n';
      return;
    case 't':
      out += '\t';
      return;
    case 'r':
      out += '\r';
      return;
    case 'b':
      out += '\b';
      return;
    case 'f':
      out += '\f';
      return;
    case 'u':
      append_utf8(decode_unicode(at, end), out);
      return;
    default:
      out += c;
  }
}

/// The size in bytes of the UTF-8 character at `at`, or 0 if it is not valid.
int character_size(const char* at, const char* end) {
  const auto byte = [&](int i) { return static_cast<unsigned char>(at[i]); };
  const unsigned first = byte(0);
  const int size = first < 0x80   ? 1
                   : first < 0xc2 ? 0
                   : first < 0xe0 ? 2
                   : first < 0xf0 ? 3
                   : first < 0xf5 ? 4
                                  : 0;
  if (size == 0 || end - at < size) return 0;
  for (int i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  const bool too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool too_large = first == 0xf4 && byte(1) >= 0x90;
  return too_long || surrogate || too_large ? 0 : size;
}

}  // namespace

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0U | code >> 6U);
  } else {
    if (code < 0x10000) {
      put(0xe0U | code >> 12U);
    } else {
      put(0xf0U | code >> 18U);
      put(0x80U | (code >> 12U & 0x3fU));
    }
    put(0x80U | (code >> 6U & 0x3fU));
  }
  put(0x80U | (code & 0x3fU));
}

std::string decode_text(const JsonValue& value, std::int64_t& invalid) {
  std::string out;
  out.reserve(value.size);
  const char* at = value.begin;
  const char* const end = value.begin + value.size;
  const bool undo_escapes = value.kind == ValueKind::text;
  bool bad = false;
  while (at < end) {
    if (*at == '\\' && undo_escapes && end - at > 1) {
      append_escape(out, ++at, end);
      continue;
    }
    const int size = character_size(at, end);
    if (size == 0) {
      append_utf8(kReplacement, out);
      bad = true;
      ++at;
    } else {
      out.append(at, static_cast<std::size_t>(size));
      at += size;
    }
  }
  if (bad) ++invalid;
  return out;
}

std::string valid_text(std::string_view text, std::int64_t& invalid) {
  const JsonValue bytes{.begin = text.data(),
                        .size = static_cast<std::uint32_t>(text.size()),
                        .kind = ValueKind::literal};
  return decode_text(bytes, invalid);
}

}  // namespace foretrace
