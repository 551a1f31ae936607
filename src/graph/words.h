#pragma once

// The words that the text notation of graphs is made of: plain or quoted names, ticks, punctuation.

#include <string>
#include <string_view>

#include "foretrace/units.h"

namespace foretrace {

/// One line of text, read from the left. White space between words does not count. Every take
/// throws Error if something else is there.
class Words {
 public:
  explicit Words(std::string_view line) : left_(line) {}

  /// At the end of the line, or at a comment.
  bool at_end();
  /// Takes `mark` if it is next.
  bool skip(std::string_view mark);
  void take(std::string_view mark);
  /// A plain name, or any text in double quotes with the escapes \" \\ \n \t and \xHH. `what` is
  /// for the message.
  std::string take_name(std::string_view what);
  /// Everything up to white space or one of `stops`.
  std::string_view take_word(std::string_view what, std::string_view stops);
  /// "3", "-2", "6.667": ticks of 1us, to the nanosecond.
  Nanoseconds take_ticks();
  [[noreturn]] void fail(std::string_view expected);

 private:
  void skip_space();
  std::string take_quoted();
  char take_escaped();

  std::string_view left_;
};

/// As take_name() reads it: plain where that is possible, else in quotes.
std::string in_quotes(std::string_view name);

std::string to_ticks(Nanoseconds time);

}  // namespace foretrace
