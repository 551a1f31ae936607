#include "import/torch_memory/pickle_numbers.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/parse_number.h"
#include "import/scan/json_scan.h"

namespace foretrace {
namespace {

/// The value of `digits` hexadecimal digits at `from`; nullopt if there are fewer.
std::optional<std::uint32_t> hexadecimal(std::string_view text, std::size_t from,
                                         std::size_t digits) {
  if (from + digits > text.size()) return {};
  std::uint32_t value = 0;
  const char* const end = text.data() + from + digits;
  const auto result = std::from_chars(text.data() + from, end, value, 16);
  if (result.ec != std::errc() || result.ptr != end) return {};
  return value;
}

/// The character that a backslash and `c` stand for; nullopt for all other escapes.
std::optional<char> simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return {};
  }
}

}  // namespace

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::optional<std::int64_t> twos_complement(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const bool negative = static_cast<unsigned char>(bytes.back()) >= 0x80;
  const char fill = negative ? '\xff' : '\0';
  while (bytes.size() > 8 && bytes.back() == fill) bytes.remove_suffix(1);
  if (bytes.size() > 8) return {};
  std::uint64_t value = little_endian(bytes);
  if (negative && bytes.size() < 8) value |= ~std::uint64_t{0} << (8 * bytes.size());
  return static_cast<std::int64_t>(value);
}

double rough_number(std::string_view bytes) {
  const std::size_t top = std::min<std::size_t>(bytes.size(), 8);
  const auto head = twos_complement(bytes.substr(bytes.size() - top));
  const std::size_t below = std::min<std::size_t>(bytes.size() - top, 1000);
  return std::ldexp(static_cast<double>(*head), static_cast<int>(8 * below));
}

double big_endian_real(std::string_view bytes) {
  std::uint64_t bits = 0;
  for (const char c : bytes) bits = bits << 8U | static_cast<unsigned char>(c);
  return std::bit_cast<double>(bits);
}

std::optional<std::int64_t> decimal_integer(std::string_view text) {
  if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
  if (const auto value = parse_number<std::int64_t>(text)) return value;
  if (const auto value = parse_number<std::uint64_t>(text))
    return static_cast<std::int64_t>(*value);
  return {};
}

std::optional<double> decimal_real(std::string_view text) {
  if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return {};
  return value;
}

std::optional<std::string> unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != text.back() || (text[0] != '\'' && text[0] != '"'))
    return {};
  text = text.substr(1, text.size() - 2);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return {};
    if (const auto simple = simple_escape(text[i])) {
      out += *simple;
    } else if (text[i] == 'x') {
      const auto code = hexadecimal(text, i + 1, 2);
      if (!code) return {};
      out += static_cast<char>(*code);
      i += 2;
    } else {
      out += '\\';
      out += text[i];
    }
  }
  return out;
}

std::optional<std::string> raw_unicode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next != 'u' && next != 'U') {
      append_utf8(static_cast<unsigned char>(text[i]), out);
      continue;
    }
    const std::size_t digits = next == 'u' ? 4 : 8;
    const auto code = hexadecimal(text, i + 2, digits);
    if (!code || *code > 0x10ffff) return {};
    append_utf8(*code, out);
    i += 1 + digits;
  }
  return out;
}

}  // namespace foretrace
