// std::to_chars for double, which the C++ library of LLVM 13 lacks. It uses musl's printf, which
// rounds correctly.

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kMaxDigits = 17;  // Enough to distinguish any two doubles.

std::to_chars_result written(char* first, char* last, const char* form, int precision,
                             double value) {
  char text[400];  // Larger than the text of any double without a fraction.
  const int size = std::snprintf(text, sizeof text, form, precision, value);
  if (size < 0 || size > last - first || size >= static_cast<int>(sizeof text))
    return {last, std::errc::value_too_large};
  std::memcpy(first, text, static_cast<std::size_t>(size));
  return {first + size, std::errc{}};
}

const char* form_of(std::chars_format format) {
  if (format == std::chars_format::fixed) return "%.*f";
  return format == std::chars_format::scientific ? "%.*e" : "%.*g";
}

/// The smallest number of digits that read back as `value`, and the power of ten of `value`.
struct ShortestDigits {
  int digits = 1, power = 0;

  explicit ShortestDigits(double value) {
    for (; digits <= kMaxDigits; ++digits) {
      char text[40];
      std::snprintf(text, sizeof text, "%.*e", digits - 1, value);
      if (std::strtod(text, nullptr) != value && digits < kMaxDigits) continue;
      const char* const e = std::strchr(text, 'e');
      if (e != nullptr) power = std::atoi(e + 1);
      break;
    }
  }
};

}  // namespace

_LIBCPP_BEGIN_NAMESPACE_STD

to_chars_result to_chars(char* first, char* last, double value, chars_format format,
                         int precision) {
  return written(first, last, form_of(format), precision, value);
}

to_chars_result to_chars(char* first, char* last, double value, chars_format format) {
  const ShortestDigits shortest(value);
  const int behind_point = shortest.digits - 1 - shortest.power;
  if (format == chars_format::fixed)
    return written(first, last, "%.*f", behind_point > 0 ? behind_point : 0, value);
  if (format == chars_format::scientific)
    return written(first, last, "%.*e", shortest.digits - 1, value);
  return written(first, last, "%.*g", shortest.digits, value);
}

to_chars_result to_chars(char* first, char* last, double value) {
  const ShortestDigits shortest(value);
  const int behind_point = shortest.digits - 1 - shortest.power;
  const auto fixed = written(first, last, "%.*f", behind_point > 0 ? behind_point : 0, value);
  char other[40];
  const auto scientific = written(other, other + sizeof other, "%.*e", shortest.digits - 1, value);
  if (fixed.ec == errc{} && fixed.ptr - first <= scientific.ptr - other) return fixed;
  return written(first, last, "%.*e", shortest.digits - 1, value);
}

_LIBCPP_END_NAMESPACE_STD
