#pragma once

// Included before everything else in every file: the parts of C++20 and glibc that Foretrace uses
// and emscripten's libraries lack.

#ifdef __cplusplus
#include <charconv>
#include <chrono>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>

using __rlimit_resource = int;

namespace std {

/// A page has no threads. The constructor throws as if the system had none left, and callers go on
/// without; see base/threads.h.
class jthread {
 public:
  template <class Work>
  explicit jthread(Work&&) {
    throw system_error(make_error_code(errc::resource_unavailable_try_again));
  }
  void join() {}
};

/// Finds the end of a number in the syntax of from_chars(): no '+', no blanks, no hex. Returns
/// `first` if there is no number.
inline const char* end_of_number(const char* first, const char* last) {
  const auto digits = [&](const char* at) {
    while (at != last && *at >= '0' && *at <= '9') ++at;
    return at;
  };
  const char* at = first != last && *first == '-' ? first + 1 : first;
  for (const char* word : {"infinity", "inf", "nan"}) {
    const char* end = at;
    while (*word != '\0' && end != last && (*end | 0x20) == *word) ++end, ++word;
    if (*word == '\0') return end;
  }
  const char* end = digits(at);
  ptrdiff_t count = end - at;
  if (end != last && *end == '.') {
    const char* behind = digits(end + 1);
    count += behind - end - 1;
    end = behind;
  }
  if (count == 0) return first;
  if (end == last || (*end | 0x20) != 'e') return end;
  const char* power = end + 1 != last && (end[1] == '-' || end[1] == '+') ? end + 2 : end + 1;
  const char* behind = digits(power);
  return behind == power ? end : behind;
}

template <class Value>
requires is_floating_point_v<Value> from_chars_result from_chars(const char* first,
                                                                 const char* last, Value& value) {
  const char* const end = end_of_number(first, last);
  if (end == first) return {first, errc::invalid_argument};
  const string text(first, end);  // musl's strtod() rounds correctly and ignores locales.
  const Value read = is_same_v<Value, float> ? strtof(text.c_str(), nullptr)
                                             : static_cast<Value>(strtod(text.c_str(), nullptr));
  const bool is_zero = text.find_first_of("123456789") >= text.find_first_of("eE");
  const bool is_word = (*(end - 1) | 0x20) >= 'a';  // inf and nan.
  if (!is_word && (isinf(read) || (read == 0 && !is_zero))) return {end, errc::result_out_of_range};
  value = read;
  return {end, errc{}};
}

namespace chrono {
template <class Count, class Period>
constexpr auto operator<=>(const duration<Count, Period>& a, const duration<Count, Period>& b) {
  return a.count() <=> b.count();
}
}  // namespace chrono

}  // namespace std
#endif
