#pragma once

// Classifies sixteen bytes of text at a time: with SSE2, which every x86-64 has, or byte by byte
// elsewhere.

#include <cstddef>
#include <cstdint>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace foretrace {

constexpr std::size_t kBlock = 16;

/// One bit for each of 16 bytes.
struct TextBits {
  std::uint32_t stops = 0;  ///< Quotes, backslashes and control characters.
  std::uint32_t high = 0;   ///< Bytes that are not ASCII.
};

struct BracketBits {
  std::uint32_t stops = 0;  ///< Quotes, brackets, braces, and the 0 at the end.
};

#if defined(__SSE2__)

inline TextBits look_at_text(const char* at) {
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
  const __m128i slash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
  const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
  const __m128i stops = _mm_or_si128(_mm_or_si128(quote, slash), control);
  return {static_cast<std::uint32_t>(_mm_movemask_epi8(stops)),
          static_cast<std::uint32_t>(_mm_movemask_epi8(block))};
}

inline BracketBits look_at_brackets(const char* at) {
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  // '[' and '{' differ in one bit, and so do ']' and '}'.
  const __m128i folded = _mm_or_si128(block, _mm_set1_epi8(0x20));
  const __m128i open = _mm_cmpeq_epi8(folded, _mm_set1_epi8('{'));
  const __m128i close = _mm_cmpeq_epi8(folded, _mm_set1_epi8('}'));
  const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
  const __m128i zero = _mm_cmpeq_epi8(block, _mm_setzero_si128());
  const __m128i stops = _mm_or_si128(_mm_or_si128(open, close), _mm_or_si128(quote, zero));
  return {static_cast<std::uint32_t>(_mm_movemask_epi8(stops))};
}

#else

inline TextBits look_at_text(const char* at) {
  TextBits bits;
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    const auto byte = static_cast<unsigned char>(at[i]);
    if (byte == '"' || byte == '\\' || byte < 0x20) bits.stops |= 1U << i;
    if (byte >= 0x80) bits.high |= 1U << i;
  }
  return bits;
}

inline BracketBits look_at_brackets(const char* at) {
  BracketBits bits;
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    const char byte = at[i];
    const bool stop =
        byte == '"' || byte == '[' || byte == ']' || byte == '{' || byte == '}' || byte == 0;
    if (stop) bits.stops |= 1U << i;
  }
  return bits;
}

#endif

}  // namespace foretrace
