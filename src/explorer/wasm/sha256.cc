// SHA-256 as in FIPS 180-4, behind the functions of libcrypto. As the standard defines them, the
// constants are computed from the fractional parts of roots of primes.

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr std::size_t kBlock = 64;

/// Returns the first 32 bits of the fractional part of `root` of each of the first primes. A double
/// holds the roots of small primes to 2^-48, so all these bits are correct.
template <std::size_t count, class Root>
std::array<std::uint32_t, count> fractions(Root root) {
  std::array<std::uint32_t, count> all{};
  std::size_t found = 0;
  for (int n = 2; found < count; ++n) {
    bool is_prime = true;
    for (int d = 2; d * d <= n; ++d) is_prime = is_prime && n % d != 0;
    if (!is_prime) continue;
    const double value = root(n);
    all[found++] = static_cast<std::uint32_t>((value - std::floor(value)) * 4294967296.0);
  }
  return all;
}

struct Sha256Constants {
  std::array<std::uint32_t, 64> rounds = fractions<64>([](double n) { return std::cbrt(n); });
  std::array<std::uint32_t, 8> start = fractions<8>([](double n) { return std::sqrt(n); });
};

const Sha256Constants& constants() {
  static const Sha256Constants all;
  return all;
}

}  // namespace

struct evp_md_ctx_st {
  std::array<std::uint32_t, 8> state = constants().start;
  std::array<unsigned char, kBlock> block{};
  std::uint64_t size = 0;

  void take_block(const unsigned char* bytes) {
    std::array<std::uint32_t, 64> w;
    for (std::size_t i = 0; i < 16; ++i) {
      w[i] = std::uint32_t{bytes[4 * i]} << 24U | std::uint32_t{bytes[4 * i + 1]} << 16U |
             std::uint32_t{bytes[4 * i + 2]} << 8U | bytes[4 * i + 3];
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3U) +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10U);
    }
    std::array<std::uint32_t, 8> s = state;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t e = s[4], a = s[0];
      const std::uint32_t t = s[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                              ((e & s[5]) ^ (~e & s[6])) + constants().rounds[i] + w[i];
      const std::uint32_t u = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                              ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
      std::shift_right(s.begin(), s.end(), 1);
      s[4] += t, s[0] = t + u;
    }
    for (std::size_t i = 0; i < 8; ++i) state[i] += s[i];
  }

  void add(const unsigned char* bytes, std::size_t count) {
    std::size_t used = size % kBlock;
    size += count;
    while (count > 0) {
      if (used == 0 && count >= kBlock) {
        take_block(bytes);
        bytes += kBlock, count -= kBlock;
        continue;
      }
      const std::size_t taken = std::min(count, kBlock - used);
      std::memcpy(block.data() + used, bytes, taken);
      bytes += taken, count -= taken, used += taken;
      if (used == kBlock) take_block(block.data()), used = 0;
    }
  }

  void finish(unsigned char* digest) {
    const std::uint64_t bits = size * 8;
    constexpr unsigned char kEnd = 0x80, kZero = 0;
    add(&kEnd, 1);
    while (size % kBlock != kBlock - 8) add(&kZero, 1);
    for (int shift = 56; shift >= 0; shift -= 8) {
      const auto byte = static_cast<unsigned char>(bits >> static_cast<unsigned>(shift));
      add(&byte, 1);
    }
    for (std::size_t i = 0; i < 32; ++i)
      digest[i] = static_cast<unsigned char>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
};

EVP_MD_CTX* EVP_MD_CTX_new() { return new evp_md_ctx_st; }
void EVP_MD_CTX_free(EVP_MD_CTX* context) { delete context; }
int EVP_DigestInit_ex(EVP_MD_CTX* context, std::nullptr_t, std::nullptr_t) {
  *context = {};
  return 1;
}
int EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, std::size_t size) {
  context->add(static_cast<const unsigned char*>(bytes), size);
  return 1;
}
int EVP_DigestFinal_ex(EVP_MD_CTX* context, unsigned char* digest, unsigned*) {
  context->finish(digest);
  return 1;
}
