#include "foretrace/names.h"

#include <algorithm>
#include <cstring>

#include "base/wide.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::size_t kFirstSlots = 1024;
constexpr std::size_t kBlockSize = 64 * 1024;
constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, odd.
constexpr std::uint64_t kSeed = 0xd6e8feb86659fd93;

/// Folds the 128-bit product onto itself: every bit of both inputs affects every bit of the result.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const UnsignedWide product = static_cast<UnsignedWide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load(const char* from, std::size_t count) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, count);
  return word;
}

/// Reads eight bytes at a time; the last word overlaps the one before it, so no loop over single
/// bytes is needed.
std::uint32_t hash_of(std::string_view text) {
  const char* at = text.data();
  std::size_t left = text.size();
  std::uint64_t hash = kSeed ^ left;
  if (left >= 8) {
    const char* const last = at + left - 8;
    for (; left > 8; at += 8, left -= 8) hash = mix(hash ^ load(at, 8), kMultiplier);
    hash = mix(hash ^ load(last, 8), kMultiplier);
  } else if (left >= 4) {
    hash = mix(hash ^ (load(at, 4) | load(at + left - 4, 4) << 32), kMultiplier);
  } else {
    const auto byte = [&](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(at[i])};
    };
    hash = mix(hash ^ (byte(0) | byte(left / 2) << 8 | byte(left - 1) << 16), kMultiplier);
  }
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

Names::Names() : texts_(1) {}

NameId Names::intern(std::string_view text) {
  if (text.empty()) return NameId{0};
  if (texts_.size() * 2 >= slots_.size()) grow();
  const std::uint32_t hash = hash_of(text);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at].id != 0; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && texts_[slots_[at].id] == text) return NameId{slots_[at].id};
  }
  CHECK(texts_.size() < UINT32_MAX);
  const auto id = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(store(text));
  slots_[at] = {hash, id};
  return NameId{id};
}

NameId Names::find(std::string_view text) const {
  if (text.empty() || slots_.empty()) return NameId{0};
  const std::uint32_t hash = hash_of(text);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].id != 0; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && texts_[slots_[at].id] == text) return NameId{slots_[at].id};
  }
  return NameId{0};
}

Names Names::clone() const {
  Names copy;
  for (const std::string_view text : texts_) copy.intern(text);
  return copy;
}

std::string_view Names::store(std::string_view text) {
  if (text.size() > kBlockSize / 4) {
    // A long text gets its own block, and the current block stays in use.
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(text.size()));
    std::copy(text.begin(), text.end(), blocks_.back().get());
    return {blocks_.back().get(), text.size()};
  }
  if (text.size() > block_left_) {
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlockSize));
    block_next_ = blocks_.back().get();
    block_left_ = kBlockSize;
  }
  std::copy(text.begin(), text.end(), block_next_);
  const std::string_view stored(block_next_, text.size());
  block_next_ += text.size();
  block_left_ -= text.size();
  return stored;
}

void Names::grow() {
  std::vector<Slot> larger(std::max(kFirstSlots, slots_.size() * 2));
  const std::size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.id == 0) continue;
    std::size_t at = slot.hash & mask;
    while (larger[at].id != 0) at = (at + 1) & mask;
    larger[at] = slot;
  }
  slots_ = std::move(larger);
}

}  // namespace foretrace
