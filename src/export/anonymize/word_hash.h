#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

/// Letters in place of a word: a keyed hash (SipHash-2-4, Aumasson and Bernstein 2012), so that who
/// does not know the salt cannot try words. 42 bits, so that ten thousand words of a trace stay
/// apart. The letters are such that no word of any library's vocabulary comes about.
class WordHash {
 public:
  explicit WordHash(std::string_view salt);
  std::string operator()(std::string_view word) const;

 private:
  std::uint64_t key_[2];
};

}  // namespace foretrace
