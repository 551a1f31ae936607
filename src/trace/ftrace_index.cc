#include "trace/ftrace_index.h"

#include <fmt/core.h>

#include "foretrace/error.h"
#include "trace/varint.h"
#include "trace/xxh64.h"

namespace foretrace::ftrace {

namespace {

std::uint64_t fixed(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

/// Parses an index. Every count is checked against the remaining bytes.
class IndexReader {
 public:
  IndexReader(std::string_view index, std::uint64_t file_size)
      : at_(index.data()), end_(index.data() + index.size()), file_size_(file_size) {}

  std::vector<Table> read() {
    std::vector<Table> tables(count());
    for (Table& table : tables) read_table(table);
    if (at_ != end_) throw TraceError("bytes after the end of the index");
    return tables;
  }

 private:
  void read_table(Table& table) {
    table.name = text();
    table.rows = number();
    rows_ += table.rows;
    if (table.rows > file_size_ * kMostRowsPerByte || rows_ > file_size_ * kMostRowsPerByte) {
      throw TraceError("more rows than fit into a file of this size");
    }
    table.columns.resize(count());
    for (Column& column : table.columns) read_column(column);
  }

  void read_column(Column& column) {
    column.name = text();
    const auto encoding = static_cast<std::uint8_t>(take(1)[0]);
    if (encoding > static_cast<std::uint8_t>(Encoding::text))
      throw TraceError("an unknown encoding");
    column.encoding = static_cast<Encoding>(encoding);
    if (column.encoding == Encoding::constant) {
      column.constant = unfold(number());
      return;
    }
    column.offset = number();
    column.stored_size = number();
    column.raw_size = number();
    column.hash = fixed(take(8));
    const bool inside =
        column.offset <= file_size_ && column.stored_size <= file_size_ - column.offset;
    if (!inside) throw TraceError("a section outside the file");
    const std::uint64_t most = file_size_ * kMostUnpackedPerByte;
    unpacked_ += column.raw_size;
    if (column.raw_size > most || unpacked_ > most)
      throw TraceError("more data than fits into a file of this size");
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    if (!take_varint(at_, end_, value)) throw TraceError("the index ends too early");
    return value;
  }

  /// Reads a count of items that take at least a byte each.
  std::size_t count() {
    const std::uint64_t value = number();
    if (value > static_cast<std::uint64_t>(end_ - at_))
      throw TraceError("the index ends too early");
    return static_cast<std::size_t>(value);
  }

  std::string_view take(std::size_t size) {
    if (size > static_cast<std::size_t>(end_ - at_)) throw TraceError("the index ends too early");
    const std::string_view taken(at_, size);
    at_ += size;
    return taken;
  }

  std::string text() { return std::string(take(count())); }

  const char* at_;
  const char* end_;
  std::uint64_t file_size_;
  std::uint64_t rows_ = 0;
  std::uint64_t unpacked_ = 0;
};

}  // namespace

std::vector<Table> read_index(std::string_view file) {
  if (file.substr(0, kMagic.size()) != kMagic)
    throw TraceError("must be a .ftrace file, but starts with other bytes");
  if (file.size() < kHeaderSize) throw TraceError("must be a whole .ftrace file, but is cut off");
  const std::uint64_t version = fixed(file.substr(kMagic.size(), 4));
  if (version != kVersion) {
    throw TraceError(fmt::format("must be version {} of .ftrace, but is version {}{}", kVersion,
                                 version,
                                 version > kVersion ? ", written by a newer Foretrace" : ""));
  }
  const bool whole = file.size() >= kHeaderSize + kTrailerSize &&
                     file.substr(file.size() - kMagic.size()) == kMagic;
  if (!whole) throw TraceError("must be a whole .ftrace file, but is cut off");
  const std::size_t trailer_at = file.size() - kTrailerSize;
  const std::string_view trailer = file.substr(trailer_at);
  const std::uint64_t offset = fixed(trailer.substr(0, 8));
  const std::uint64_t size = fixed(trailer.substr(8, 8));
  if (offset > trailer_at || size != trailer_at - offset) {
    throw TraceError("the trailer is damaged, at byte " + std::to_string(trailer_at));
  }
  return within("index at byte " + std::to_string(offset), [&] {
    const std::string_view index =
        file.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    if (xxh64(index) != fixed(trailer.substr(16, 8))) throw TraceError("the checksum is wrong");
    return IndexReader(index, file.size()).read();
  });
}

}  // namespace foretrace::ftrace
