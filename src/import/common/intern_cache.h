#pragma once

// A cache in front of Names that recognizes most texts by comparing them with one candidate, which
// is faster than hashing all of a long text: kernel names and call stacks have hundreds of bytes,
// and the same few recur.

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "foretrace/names.h"

namespace foretrace {

class InternCache {
 public:
  explicit InternCache(Names& names) : names_(names) {}

  NameId intern(std::string_view text) {
    if (text.empty()) return NameId{};
    Slot& slot = slots_[hash(text)];
    if (slot.text != text) {
      slot.id = names_.intern(text);
      slot.text = names_[slot.id];
    }
    return slot.id;
  }

 private:
  struct Slot {
    std::string_view text;
    NameId id{};
  };
  static constexpr std::size_t kSlots = 4096;

  static std::uint64_t load(const char* bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }

  /// Hashes the length and four samples.
  static std::size_t hash(std::string_view text) {
    const std::size_t size = text.size();
    std::uint64_t mixed = size * 0x9e3779b97f4a7c15U;
    if (size >= 8) {
      mixed ^= load(text.data());
      mixed *= 0xc2b2ae3d27d4eb4fU;
      mixed ^= load(text.data() + size - 8);
      mixed *= 0x9e3779b97f4a7c15U;
      mixed ^= load(text.data() + (size - 8) / 2) + (mixed >> 29U);
      mixed *= 0xc2b2ae3d27d4eb4fU;
      mixed ^= load(text.data() + (size - 8) / 4) + (mixed >> 31U);
    } else {
      for (const char c : text)
        mixed = (mixed ^ static_cast<unsigned char>(c)) * 0xc2b2ae3d27d4eb4fU;
    }
    mixed *= 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(mixed >> 52U) % kSlots;
  }

  Names& names_;
  std::array<Slot, kSlots> slots_{};
};

}  // namespace foretrace
