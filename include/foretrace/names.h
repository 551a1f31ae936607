#pragma once

// Interned texts. A trace of a million records has a few thousand different names; each is stored
// once and known by its number. Numbers are given in the order of first use, so they are the same
// in every run.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace foretrace {

/// 0 is the empty text in every table.
enum class NameId : std::uint32_t {};

class Names {
 public:
  Names();

  /// The number of `text`, which is copied if new. Amortised constant time.
  NameId intern(std::string_view text);
  /// The number of `text`, or 0 if it was never interned.
  NameId find(std::string_view text) const;
  /// Valid as long as the table lives, also while it grows and after it was moved.
  std::string_view operator[](NameId id) const { return texts_[static_cast<std::uint32_t>(id)]; }
  /// Including the empty text.
  std::size_t size() const { return texts_.size(); }

  Names(Names&&) noexcept = default;
  Names& operator=(Names&&) noexcept = default;
  /// Linear.
  Names clone() const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id = 0;  ///< 0: free.
  };
  std::string_view store(std::string_view text);
  void grow();

  std::vector<std::string_view> texts_;
  std::vector<Slot> slots_;  ///< Open addressing, a power of two.
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_left_ = 0;
  char* block_next_ = nullptr;
};

}  // namespace foretrace
