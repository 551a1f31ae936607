#include "import/scan/protobuf.h"

#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kLongestVarint = 10;

}  // namespace

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < kLongestVarint; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

bool ProtoReader::next() {
  if (damaged_ || rest_.empty()) return false;
  damaged_ = true;  // Cleared once the field is found to be complete.
  const std::optional<std::uint64_t> key = take_varint(rest_);
  if (!key || *key >> 3U == 0 || *key >> 3U > 0x1fffffff) return false;
  number_ = static_cast<std::uint32_t>(*key >> 3U);
  wire_ = static_cast<WireType>(*key & 7U);
  bytes_ = {};
  value_ = 0;
  switch (wire_) {
    case WireType::varint: {
      const std::optional<std::uint64_t> value = take_varint(rest_);
      if (!value) return false;
      value_ = *value;
      break;
    }
    case WireType::fixed64:
      if (!take_fixed(8)) return false;
      break;
    case WireType::fixed32:
      if (!take_fixed(4)) return false;
      break;
    case WireType::bytes: {
      const std::optional<std::uint64_t> size = take_varint(rest_);
      if (!size || *size > rest_.size()) return false;
      bytes_ = rest_.substr(0, static_cast<std::size_t>(*size));
      rest_.remove_prefix(bytes_.size());
      break;
    }
    default:
      return false;
  }
  damaged_ = false;
  return true;
}

bool ProtoReader::take_fixed(std::size_t size) {
  if (rest_.size() < size) return false;
  for (std::size_t i = 0; i < size; ++i) {
    value_ |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
  }
  rest_.remove_prefix(size);
  return true;
}

bool ProtoStream::fill(std::size_t size) {
  if (buffer_.size() - at_ >= size) return true;
  dropped_ += static_cast<std::int64_t>(at_);
  buffer_.erase(0, at_);
  at_ = 0;
  while (buffer_.size() < size) {
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kPiece);
    const std::size_t got = source_.read(buffer_.data() + before, kPiece);
    buffer_.resize(before + got);
    if (got == 0) return false;
  }
  return true;
}

std::optional<std::uint64_t> ProtoStream::varint() {
  fill(kLongestVarint);
  std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.empty()) return std::nullopt;
  const std::optional<std::uint64_t> value = take_varint(rest);
  if (value) {
    at_ = buffer_.size() - rest.size();
  } else {
    cut_ = true;
  }
  return value;
}

std::optional<std::string_view> ProtoStream::take(std::uint64_t size) {
  if (size > kLongest) {
    throw TraceError(fmt::format("a message claims {} bytes, more than {} MiB, at byte {}", size,
                                 kLongest >> 20U, offset()));
  }
  if (!fill(static_cast<std::size_t>(size))) {
    cut_ = true;
    return std::nullopt;
  }
  const std::string_view taken =
      std::string_view(buffer_).substr(at_, static_cast<std::size_t>(size));
  at_ += taken.size();
  return taken;
}

std::optional<std::string_view> ProtoStream::delimited() {
  const std::optional<std::uint64_t> size = varint();
  return size ? take(*size) : std::nullopt;
}

}  // namespace foretrace
