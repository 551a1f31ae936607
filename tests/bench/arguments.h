#pragma once

// The arguments of a benchmark. A wrong one ends it with exit code 2 and one line.

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace foretrace::bench {

class Arguments {
 public:
  /// `usage` names the arguments that may be there, such as "[trace] [megabytes]".
  Arguments(int count, char** words, const char* usage)
      : count_(count), words_(words), usage_(usage) {
    int most = 0;
    for (const char* at = usage; *at != '\0'; ++at) most += *at == '[' ? 1 : 0;
    if (count - 1 > most) refuse(words[most + 1], "left out");
  }

  /// A whole number; `otherwise` if there is none at this place.
  template <class Number>
  Number number(int place, Number otherwise, Number least = 1) const {
    if (place >= count_) return otherwise;
    const char* const end = words_[place] + std::strlen(words_[place]);
    Number value = 0;
    const auto [stop, error] = std::from_chars(words_[place], end, value);
    if (error == std::errc() && stop == end && value >= least) return value;
    refuse(words_[place], ("a whole number of at least " + std::to_string(least)).c_str());
  }

  const char* path(int place, const char* otherwise) const {
    if (place < count_ && words_[place][0] == '-') refuse(words_[place], "a path");
    return place < count_ ? words_[place] : otherwise;
  }

 private:
  [[noreturn]] void refuse(const char* word, const char* wanted) const {
    std::fprintf(stderr, "%s: must be %s, got '%s'; usage: %s %s\n", words_[0], wanted, word,
                 words_[0], usage_);
    std::exit(2);
  }

  int count_;
  char** words_;
  const char* usage_;
};

}  // namespace foretrace::bench
