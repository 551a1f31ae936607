#pragma once

// The layout of a .ftrace file; traces/README.md explains it with an example.
//
//     header   magic, version
//     sections one for each column that is not constant, raw or as a zstd frame
//     padding  zeros, see kMaxRowsPerByte
//     index    the tables that have rows, their columns and the places of the sections
//     trailer  place and checksum of the index

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "foretrace/names.h"

namespace foretrace::ftrace {

constexpr std::string_view kMagic(
    "\x89"
    "FTRC\r\n\x1a",
    8);
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderSize = 16;
constexpr std::size_t kTrailerSize = 32;

/// The reader rejects a file with more rows or unpacked bytes per byte of the file before it
/// allocates anything; the writer pads a file that compresses better than that.
constexpr std::uint64_t kMaxRowsPerByte = 16;
constexpr std::uint64_t kMaxUnpackedPerByte = 1024;

enum class Encoding : std::uint8_t {
  constant,  ///< All rows have one value, which the index holds. There is no section.
  plain,     ///< Each row as a varint.
  delta,     ///< Each row as a varint of its difference to the row before (to 0 for the first).
  text,      ///< The lengths of all rows as varints, then the bytes of all rows.
};

struct Column {
  std::string name;
  Encoding encoding = Encoding::constant;
  std::int64_t constant = 0;
  std::uint64_t offset = 0;
  std::uint64_t stored_size = 0;  ///< Equal to raw_size if the section is not compressed.
  std::uint64_t raw_size = 0;
  std::uint64_t hash = 0;  ///< XXH64 of the raw bytes.
};

struct Table {
  std::string name;
  std::uint64_t rows = 0;
  std::vector<Column> columns;
};

/// A value as the file stores it: a 64-bit integer.
template <class Value>
std::int64_t to_wire(Value value) {
  if constexpr (std::is_enum_v<Value>) {
    return static_cast<std::int64_t>(static_cast<std::underlying_type_t<Value>>(value));
  } else {
    return static_cast<std::int64_t>(value);
  }
}

/// Returns false if the value does not fit.
template <class Value>
bool from_wire(std::int64_t wire, Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    value = wire != 0;
    return wire == 0 || wire == 1;
  } else if constexpr (std::is_enum_v<Value>) {
    using Number = std::underlying_type_t<Value>;
    value = static_cast<Value>(static_cast<Number>(wire));
    return std::in_range<Number>(wire);
  } else {
    value = static_cast<Value>(wire);
    return std::is_same_v<Value, std::uint64_t> || std::in_range<Value>(wire);
  }
}

}  // namespace foretrace::ftrace
