#pragma once

// Assigns numbers to texts that occur again and again: names of kernels, ranges and calls. Safe to
// use from any thread. It runs inside the user's program, so it allocates with malloc and never
// throws.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace foretrace::collect {

class Texts {
 public:
  /// Returns the number of a text, from 1; 0 for the empty text, or if there is no more room.
  std::uint32_t number(std::string_view text);

  /// Like number(), but faster for a text that is usually at the same address.
  std::uint32_t number_at(const char* text);

  /// Returns the text with this number, or "" for 0 and unknown numbers. It stays valid for ever.
  const char* text(std::uint32_t number);

  /// Texts in the form of a texts chunk (spool.h). The receiver frees `bytes`.
  struct Body {
    char* bytes = nullptr;  ///< nullptr if there are none.
    std::size_t size = 0;
    std::uint32_t count = 0;
  };
  /// Returns the texts that were numbered since the last call.
  Body take_new();

 private:
  struct Entry {
    const char* text;
    std::uint32_t size;
    std::uint32_t hash;
  };
  struct CachedText {
    const char* at;
    std::uint32_t number;
  };

  std::uint32_t locked_number(std::string_view text);
  bool grow();
  bool append_new(std::uint32_t number, std::string_view text);
  const char* copy_text(std::string_view text);

  std::mutex mutex_;
  Entry* entries_ = nullptr;  ///< By number; entry 0 is unused.
  std::uint32_t count_ = 1;
  std::uint32_t* slots_ = nullptr;  ///< Numbers, open addressing; 0 is free.
  std::uint32_t slot_count_ = 0;
  char* block_ = nullptr;
  std::size_t block_left_ = 0;
  std::size_t copied_bytes_ = 0;
  Body new_;
  std::size_t new_room_ = 0;
  CachedText text_cache_[4096] = {};
};

}  // namespace foretrace::collect
