#include "collect/spool/texts.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace foretrace::collect {

namespace {

/// More texts than this are only kept by programs whose texts all differ; then they only cost
/// memory.
constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxTextBytes = 16384;
/// This limit is only reached if nothing can be written.
constexpr std::size_t kMaxUnwritten = std::size_t{32} << 20;
constexpr std::size_t kBlockBytes = std::size_t{256} << 10;

std::uint32_t hash_of(std::string_view text) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL ^ text.size();
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32U;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, at, left);
  hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
  return static_cast<std::uint32_t>(hash ^ (hash >> 32U));
}

/// Enlarges an array. Returns false and keeps the old memory if there is no more.
template <class Item>
bool enlarge(Item*& items, std::size_t count) {
  void* more = std::realloc(items, count * sizeof(Item));
  if (more == nullptr) return false;
  items = static_cast<Item*>(more);
  return true;
}

}  // namespace

std::uint32_t Texts::number(std::string_view text) {
  if (text.empty()) return 0;
  const std::lock_guard lock(mutex_);
  return locked_number(text);
}

std::uint32_t Texts::number_at(const char* text) {
  if (text == nullptr || *text == '\0') return 0;
  const std::lock_guard lock(mutex_);
  CachedText& seen =
      text_cache_[(reinterpret_cast<std::uintptr_t>(text) >> 4U) % std::size(text_cache_)];
  // Compare the text, because a module that was loaded later may have another one at this address.
  if (seen.at == text && std::strcmp(entries_[seen.number].text, text) == 0) return seen.number;
  const std::uint32_t number = locked_number(text);
  if (number != 0) seen = {text, number};
  return number;
}

const char* Texts::text(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  return number == 0 || number >= count_ ? "" : entries_[number].text;
}

std::uint32_t Texts::locked_number(std::string_view text) {
  text = text.substr(0, kMaxTextBytes);
  if ((count_ + 1) * 2 > slot_count_ && !grow()) return 0;
  const std::uint32_t hash = hash_of(text);
  std::uint32_t slot = hash & (slot_count_ - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slot_count_ - 1)) {
    const Entry& entry = entries_[slots_[slot]];
    if (entry.hash == hash && std::string_view(entry.text, entry.size) == text) return slots_[slot];
  }
  const char* copy = copy_text(text);
  if (copy == nullptr || !append_new(count_, text)) return 0;
  entries_[count_] = {copy, static_cast<std::uint32_t>(text.size()), hash};
  slots_[slot] = count_;
  return count_++;
}

bool Texts::grow() {
  const std::uint32_t more = std::max(4096U, slot_count_ * 2);
  auto* slots = static_cast<std::uint32_t*>(std::calloc(more, sizeof(std::uint32_t)));
  if (slots == nullptr || !enlarge(entries_, more)) {
    std::free(slots);
    return false;
  }
  for (std::uint32_t number = 1; number < count_; ++number) {
    std::uint32_t slot = entries_[number].hash & (more - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (more - 1);
    slots[slot] = number;
  }
  std::free(slots_);
  slots_ = slots;
  slot_count_ = more;
  return true;
}

const char* Texts::copy_text(std::string_view text) {
  const std::size_t bytes = text.size() + 1;
  if (copied_bytes_ + bytes > kMaxBytes) return nullptr;
  if (bytes > block_left_) {
    block_ = static_cast<char*>(std::malloc(kBlockBytes));
    block_left_ = block_ == nullptr ? 0 : kBlockBytes;
    if (block_ == nullptr) return nullptr;
  }
  char* copy = block_;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  block_ += bytes;
  block_left_ -= bytes;
  copied_bytes_ += bytes;
  return copy;
}

bool Texts::append_new(std::uint32_t number, std::string_view text) {
  const std::size_t bytes = (8 + text.size() + 7) / 8 * 8;
  if (new_.size + bytes > kMaxUnwritten) return false;
  if (new_.size + bytes > new_room_) {
    const std::size_t room = std::max(new_room_ * 2, new_.size + bytes + 65536);
    if (!enlarge(new_.bytes, room)) return false;
    new_room_ = room;
  }
  char* to = new_.bytes + new_.size;
  std::memset(to + bytes - 8, 0, 8);
  const auto size = static_cast<std::uint32_t>(text.size());
  std::memcpy(to, &number, 4);
  std::memcpy(to + 4, &size, 4);
  std::memcpy(to + 8, text.data(), text.size());
  new_.size += bytes;
  ++new_.count;
  return true;
}

Texts::Body Texts::take_new() {
  const std::lock_guard lock(mutex_);
  const Body taken = new_;
  new_ = {};
  new_room_ = 0;
  return taken;
}

}  // namespace foretrace::collect
