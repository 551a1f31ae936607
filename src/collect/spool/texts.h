#pragma once

// Numbers for texts that come over and over: names of kernels, ranges, calls. Safe to use from any
// thread. Allocates with malloc and never throws: this runs inside the user's program.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace foretrace::collect {

class Texts {
 public:
  /// The number of a text, from 1; 0 for the empty one, and when there is no more room.
  std::uint32_t number(std::string_view text);

  /// As above, for a text that is mostly found at the same address.
  std::uint32_t number_at(const char* text);

  /// "" for 0 and for unknown numbers. Valid for ever.
  const char* text(std::uint32_t number);

  /// Texts as the body of a texts chunk (spool.h). Its receiver frees the body.
  struct Body {
    char* bytes = nullptr;  ///< nullptr if there are none.
    std::size_t size = 0;
    std::uint32_t count = 0;
  };
  /// Returns the texts that got their number since the last call.
  Body take_new();

 private:
  struct Entry {
    const char* text;
    std::uint32_t size;
    std::uint32_t hash;
  };
  struct Seen {
    const char* at;
    std::uint32_t number;
  };

  std::uint32_t locked_number(std::string_view text);
  bool grow();
  bool append_new(std::uint32_t number, std::string_view text);
  const char* keep(std::string_view text);

  std::mutex mutex_;
  Entry* entries_ = nullptr;  ///< By number; entry 0 is unused.
  std::uint32_t count_ = 1;
  std::uint32_t entry_room_ = 0;
  std::uint32_t* slots_ = nullptr;  ///< Numbers, open addressing; 0 is free.
  std::uint32_t slot_count_ = 0;
  char* block_ = nullptr;
  std::size_t block_left_ = 0;
  std::size_t kept_bytes_ = 0;
  Body new_;
  std::size_t new_room_ = 0;
  Seen seen_[4096] = {};
};

}  // namespace foretrace::collect
