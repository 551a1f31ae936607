#pragma once

// Protocol buffers without a schema: a message is cut into its fields, and the caller, who knows
// the schema, takes fields by their number. Nothing is copied: a field of bytes is a view into the
// message.
//
//     ProtoReader fields(message);
//     while (fields.next()) {
//       if (fields.number() == 2) name = fields.bytes();
//     }
//     if (fields.damaged()) ...
//
// A view that is not a message (a number, say) reads as damaged or as fields that nobody asks for;
// it is never read beyond its end.

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "import/files/source.h"

namespace foretrace {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Takes a varint from the front of `bytes`; without a complete one of at most ten bytes, returns
/// nothing and leaves `bytes` as before.
std::optional<std::uint64_t> take_varint(std::string_view& bytes);

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  /// False at the end of the message, or if it is damaged.
  bool next();
  bool damaged() const { return damaged_; }

  // The field that next() found. A field of another wire type than requested reads as 0 or empty,
  // as in a schema that has changed.
  std::uint32_t number() const { return number_; }
  WireType wire() const { return wire_; }
  std::uint64_t unsigned_value() const { return wire_ == WireType::bytes ? 0 : value_; }
  std::int64_t signed_value() const { return static_cast<std::int64_t>(unsigned_value()); }
  /// For sint32 and sint64, which have their sign in the lowest bit.
  std::int64_t zigzag_value() const {
    return static_cast<std::int64_t>(unsigned_value() >> 1U ^ -(unsigned_value() & 1U));
  }
  double double_value() const {
    return wire_ == WireType::fixed64 ? std::bit_cast<double>(value_) : 0;
  }
  float float_value() const {
    return wire_ == WireType::fixed32 ? std::bit_cast<float>(static_cast<std::uint32_t>(value_))
                                      : 0;
  }
  /// For texts, bytes, messages inside the message, and packed lists.
  std::string_view bytes() const { return bytes_; }

  /// Calls `visit` with each value of a list of varints, packed or one field each.
  template <class Visit>
  void each_varint(Visit&& visit) {
    if (wire_ != WireType::bytes) return visit(unsigned_value());
    std::string_view packed = bytes_;
    while (const std::optional<std::uint64_t> value = take_varint(packed)) visit(*value);
    damaged_ |= !packed.empty();
  }

 private:
  bool take_fixed(std::size_t size);

  std::string_view rest_;
  std::string_view bytes_;
  std::uint64_t value_ = 0;
  std::uint32_t number_ = 0;
  WireType wire_ = WireType::varint;
  bool damaged_ = false;
};

/// The bytes of a long file of messages, in order. Keeps one message at a time; a length in the
/// file is not trusted before the bytes are there.
class ProtoStream {
 public:
  /// No message of a trace is longer.
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 28;

  explicit ProtoStream(Source& bytes) : source_(bytes) {}

  /// Empty at the end of the bytes, also in the middle of a varint; is_cut() tells which.
  std::optional<std::uint64_t> varint();
  /// The next `size` bytes, valid until the next call; empty if there are fewer. Throws TraceError
  /// if `size` is more than kLongest.
  std::optional<std::string_view> take(std::uint64_t size);
  /// A message after its length, as in files of delimited messages.
  std::optional<std::string_view> delimited();

  /// Something began and did not end.
  bool is_cut() const { return cut_; }
  /// Position of the next byte.
  std::int64_t offset() const { return dropped_ + static_cast<std::int64_t>(at_); }

 private:
  /// Whether `size` bytes are available after `at_`, reading on if necessary.
  bool fill(std::size_t size);

  Source& source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::int64_t dropped_ = 0;
  bool cut_ = false;
};

}  // namespace foretrace
