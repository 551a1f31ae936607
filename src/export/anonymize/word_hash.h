#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

/// Replaces a word by letters: a keyed hash (SipHash-2-4, Aumasson and Bernstein 2012), so that
/// nobody can test guesses without the salt. It has 42 bits, so ten thousand words of a trace are
/// unlikely to collide. The letters are chosen so that they never form a word of a library's
/// vocabulary.
class WordHash {
 public:
  explicit WordHash(std::string_view salt);
  std::string operator()(std::string_view word) const;

 private:
  std::uint64_t key_[2];
};

}  // namespace foretrace
