#pragma once

#include <cstddef>
#include <cstdint>

namespace foretrace {

/// Small numbers from the bytes of an input; 0 when they are used up.
class Supply {
 public:
  Supply(const std::uint8_t* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}
  bool empty() const { return at_ == end_; }
  std::uint8_t next() { return empty() ? std::uint8_t{0} : *at_++; }
  std::int64_t time() { return (next() * 256 + next()) * (next() % 4 == 0 ? 1000 : 100); }
  std::uint32_t below(std::uint32_t limit) { return next() % limit; }
  /// True once in this many calls, and never when the bytes are used up.
  bool once_in(std::uint32_t times) { return !empty() && below(times) == times - 1; }

  template <class Value, std::size_t count>
  const Value& one_of(const Value (&values)[count]) {
    return values[below(static_cast<std::uint32_t>(count))];
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace foretrace
