#pragma once

// The tokens of the text notation: plain or quoted names, ticks, punctuation.

#include <string>
#include <string_view>

#include "foretrace/units.h"

namespace foretrace {

/// Reads one line of text from the left, ignoring white space between words. Every take function
/// throws Error if something else is next.
class Tokenizer {
 public:
  explicit Tokenizer(std::string_view line) : rest_(line) {}

  /// Whether only white space or a comment is left.
  bool at_end();
  /// Takes `token` if it is next; returns whether it was.
  bool skip(std::string_view token);
  void take(std::string_view token);
  /// Takes a plain name, or any text in double quotes with the escapes \" \\ \n \t and \xHH.
  /// `expected` describes it in the error message.
  std::string take_name(std::string_view expected);
  /// Takes everything up to white space or one of `stops`.
  std::string_view take_word(std::string_view expected, std::string_view stops);
  /// Takes a time such as "3", "-2" or "6.667": ticks of 1us, to the nanosecond.
  Nanoseconds take_ticks();
  [[noreturn]] void fail(std::string_view expected);

 private:
  void skip_space();
  std::string take_quoted();
  char take_escaped();

  std::string_view rest_;
};

/// Writes a name so that take_name() reads it: plain if possible, else in quotes.
std::string in_quotes(std::string_view name);

std::string to_ticks(Nanoseconds time);

}  // namespace foretrace
