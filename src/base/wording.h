#pragma once

// Text for numbers, notes and long names.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "foretrace/notes.h"

namespace foretrace {

/// Groups digits: 53021 -> "53,021".
std::string grouped(std::int64_t value);
template <std::integral Number>
std::string grouped(Number value) {
  return grouped(static_cast<std::int64_t>(value));
}

/// Returns the noun as it stands behind a count: "copy" or "copies", "batch" or "batches".
std::string noun_for(std::int64_t count, std::string_view noun);

/// Returns "1 task" or "2,000 tasks".
std::string counted(std::int64_t count, std::string_view noun);
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return counted(static_cast<std::int64_t>(count), noun);
}

/// Joins texts: "step_time, syncs".
template <class Texts>
std::string joined(const Texts& texts, std::string_view between = ", ") {
  std::string all;
  for (const auto& text : texts) {
    if (!all.empty()) all += between;
    all += text;
  }
  return all;
}

/// Converts ASCII letters to lower case.
std::string lower_case(std::string_view text);

/// Keeps only ASCII letters, in lower case, and digits, so that "All-Reduce" and "all_reduce" are
/// equal.
std::string letters_and_digits(std::string_view text);

/// Returns at most `most` bytes: a longer text is cut at a whole character and gets "...".
std::string shortened(std::string_view text, std::size_t most);

/// Returns text such as "warning: kernels without a launch record (733 times, first: ampere_sgemm
/// at 1.2 ms)".
std::string note_text(const Note& note);
std::string note_text_without_severity(const Note& note);

}  // namespace foretrace
