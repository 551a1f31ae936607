#include "export/anonymize/word_hash.h"

#include <bit>

namespace foretrace {
namespace {

constexpr std::string_view kLetters = "bdghjkvz";
constexpr int kLength = 14;

struct State {
  std::uint64_t a, b, c, d;

  void round() {
    a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
    c += d, d = std::rotl(d, 16) ^ c;
    a += d, d = std::rotl(d, 21) ^ a;
    c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
  }
  void take(std::uint64_t word) {
    d ^= word;
    round(), round();
    a ^= word;
  }
};

std::uint64_t sip_hash(std::uint64_t key0, std::uint64_t key1, std::string_view text) {
  State state{key0 ^ 0x736f6d6570736575U, key1 ^ 0x646f72616e646f6dU, key0 ^ 0x6c7967656e657261U,
              key1 ^ 0x7465646279746573U};
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * (i % 8));
    if (i % 8 == 7) state.take(word), word = 0;
  }
  state.take(word | std::uint64_t{text.size() & 0xffU} << 56U);
  state.c ^= 0xffU;
  for (int i = 0; i < 4; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace

WordHash::WordHash(std::string_view salt) : key_{sip_hash(1, 2, salt), sip_hash(3, 4, salt)} {}

std::string WordHash::operator()(std::string_view word) const {
  std::uint64_t bits = sip_hash(key_[0], key_[1], word);
  std::string letters;
  for (int i = 0; i < kLength; ++i, bits >>= 3U) letters += kLetters[bits & 7U];
  return letters;
}

}  // namespace foretrace
