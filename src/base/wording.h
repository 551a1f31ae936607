#pragma once

// Numbers, notes and long names in words.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "foretrace/notes.h"

namespace foretrace {

/// 53021 -> "53,021"
std::string grouped(std::int64_t value);

/// "1 task", "2 tasks"
std::string counted(std::int64_t count, std::string_view noun);

/// "step_time, syncs": texts, one behind the other.
template <class Texts>
std::string joined(const Texts& texts, std::string_view between = ", ") {
  std::string all;
  for (const auto& text : texts) {
    if (!all.empty()) all += between;
    all += text;
  }
  return all;
}

/// With ASCII letters in lower case.
std::string lower_case(std::string_view text);

/// ASCII letters, in lower case, and digits: "All-Reduce" and "all_reduce" are one.
std::string letters_and_digits(std::string_view text);

/// At most `most` bytes of it: the begin of a longer text, up to a whole character, and "...".
std::string shortened(std::string_view text, std::size_t most);

/// "warning: kernels without a launch record (733 times, first: ampere_sgemm at 1.2 ms)"
std::string note_text(const Note& note);
std::string note_text_without_severity(const Note& note);

}  // namespace foretrace
