#pragma once

// Which of a few dozen known words a text is. Built by the compiler, looked up for every key of
// every event: two multiplications and one comparison. The text must be readable for 8 bytes.

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace foretrace {

template <class Value, std::size_t kSlots = 256>
class WordTable {
 public:
  struct Entry {
    std::string_view word;
    Value value{};
  };

  constexpr WordTable(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) {
      std::size_t slot = hash(entry.word);
      while (!slots_[slot].word.empty()) slot = (slot + 1) % kSlots;
      slots_[slot] = entry;
    }
  }

  /// The value of `text`, or Value{} if it is no known word.
  Value find(std::string_view text) const {
    for (std::size_t slot = hash(text);; slot = (slot + 1) % kSlots) {
      const Entry& entry = slots_[slot];
      if (entry.word.empty()) return Value{};
      if (entry.word == text) return entry.value;
    }
  }

 private:
  /// The first `count` (at most 8) of 8 bytes, as a little-endian machine loads them.
  static constexpr std::uint64_t load(const char* bytes, std::size_t count) {
    if (std::is_constant_evaluated() || std::endian::native != std::endian::little) {
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < count; ++i) {
        word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
      }
      return word;
    }
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return count < 8 ? word & ((std::uint64_t{1} << (8 * count)) - 1) : word;
  }

  static constexpr std::size_t hash(std::string_view text) {
    const std::size_t size = text.size();
    std::uint64_t mixed = (load(text.data(), size < 8 ? size : 8) ^ size) * 0x9e3779b97f4a7c15U;
    if (size > 8) mixed ^= load(text.data() + size - 8, 8) * 0xc2b2ae3d27d4eb4fU;
    return static_cast<std::size_t>(mixed >> 40U) % kSlots;
  }

  std::array<Entry, kSlots> slots_{};
};

}  // namespace foretrace
