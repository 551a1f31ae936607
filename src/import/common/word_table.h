#pragma once

// Maps a few dozen known words to values. The compiler builds the table; importers look up every
// key of every event, which takes two multiplications and one comparison. At least 8 bytes must be
// readable from the start of a text that is looked up.

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
      const WordKey key = key_of(entry.word);
      std::size_t slot = hash(key);
      while (!slots_[slot].entry.word.empty()) slot = (slot + 1) % kSlots;
      slots_[slot] = {key, entry};
    }
  }

  /// The value of `text`, or Value{} if it is not a known word.
  Value find(std::string_view text) const {
    const WordKey key = key_of(text);
    for (std::size_t at = hash(key);; at = (at + 1) % kSlots) {
      const Slot& slot = slots_[at];
      if (slot.entry.word.empty()) return Value{};
      if (slot.key == key && (text.size() <= 16 || slot.entry.word == text))
        return slot.entry.value;
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

  /// The first and last 8 bytes and the size, which identify a text of up to 16 bytes.
  struct WordKey {
    std::uint64_t first = 0, last = 0, size = 0;
    friend constexpr bool operator==(const WordKey&, const WordKey&) = default;
  };
  struct Slot {
    WordKey key;
    Entry entry;
  };

  static constexpr WordKey key_of(std::string_view text) {
    const std::size_t size = text.size();
    return {load(text.data(), size < 8 ? size : 8), size > 8 ? load(text.data() + size - 8, 8) : 0,
            size};
  }

  static constexpr std::size_t hash(const WordKey& key) {
    const std::uint64_t mixed =
        (key.first ^ key.size) * 0x9e3779b97f4a7c15U ^ key.last * 0xc2b2ae3d27d4eb4fU;
    return static_cast<std::size_t>(mixed >> 40U) % kSlots;
  }

  std::array<Slot, kSlots> slots_{};
};

}  // namespace foretrace
