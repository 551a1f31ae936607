#pragma once

// Reads protocol buffers without a schema: the reader splits a message into its fields, and the
// caller, which knows the schema, selects fields by their number. Nothing is copied: a field of
// bytes is a view into the message.
//
//     ProtoReader fields(message);
//     while (fields.next()) {
//       if (fields.number() == 2) name = fields.bytes();
//     }
//     if (fields.damaged()) ...
//
// Bytes that are not a message read as damaged, or as fields that the caller ignores. Nothing is
// ever read beyond their end.

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "import/files/source.h"

namespace foretrace {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Removes a varint from the front of `bytes` and returns it. Returns nullopt, and leaves `bytes`
/// unchanged, if there is no complete varint of at most ten bytes.
std::optional<std::uint64_t> take_varint(std::string_view& bytes);

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  /// Goes to the next field. Returns false at the end of the message or if it is damaged.
  bool next();
  bool damaged() const { return damaged_; }

  // The members below describe the field that next() found. A field whose wire type does not match
  // the request reads as 0 or empty, as if the schema had changed.
  std::uint32_t number() const { return number_; }
  WireType wire() const { return wire_; }
  std::uint64_t unsigned_value() const { return wire_ == WireType::bytes ? 0 : value_; }
  std::int64_t signed_value() const { return static_cast<std::int64_t>(unsigned_value()); }
  /// The value of a sint32 or sint64, which has its sign in the lowest bit.
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
  /// The value of a text, bytes, a nested message or a packed list.
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

/// Reads a long file of messages in order. Keeps one message at a time in memory. It does not trust
/// a length in the file: memory grows only as bytes arrive.
class ProtoStream {
 public:
  /// Limit on the size of a message in bytes; no trace has longer ones.
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 28;

  explicit ProtoStream(Source& bytes) : source_(bytes) {}

  /// Returns nullopt at the end of the file; is_cut() tells whether it ends within a varint.
  std::optional<std::uint64_t> varint();
  /// The next `size` bytes, valid until the next call; nullopt if there are fewer. Throws
  /// TraceError if `size` is more than kLongest.
  std::optional<std::string_view> take(std::uint64_t size);
  /// Reads a length and the message that follows it. Returns nullopt at the end of the file.
  std::optional<std::string_view> delimited();

  /// Whether the file ends within a varint or a message.
  bool is_cut() const { return cut_; }
  /// Position of the next byte in the file.
  std::int64_t offset() const { return dropped_ + static_cast<std::int64_t>(at_); }

 private:
  /// Reads until `size` bytes are available after `at_`. Returns false if the file ends before.
  bool fill(std::size_t size);

  Source& source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::int64_t dropped_ = 0;
  bool cut_ = false;
};

}  // namespace foretrace
