#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/core.h>
#include <memory>
#include <string_view>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/trace.h"
#include "trace/ftrace_bytes.h"
#include "trace/ftrace_layout.h"
#include "trace/ftrace_section.h"
#include "trace/ftrace_tables.h"
#include "trace/validate.h"
#include "trace/varint.h"

namespace foretrace {

namespace ftrace {

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
    if (table.rows > file_size_ * kMaxRowsPerByte || rows_ > file_size_ * kMaxRowsPerByte) {
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
    const std::uint64_t most = file_size_ * kMaxUnpackedPerByte;
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

/// Reads the index at the end of `file`, which is a whole .ftrace file. Throws TraceError if the
/// index is damaged, a section lies outside the file, or rows or sizes exceed the limits for a file
/// of this size.
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

/// Fills the tables of a trace. Fields without a column in the file keep their defaults; unknown
/// columns are ignored.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file), tables_(read_index(file)) {}

  template <class Row, class Columns>
  void table(std::string_view name, std::vector<Row>& rows, Columns&& columns) {
    for (const Table& table : tables_) {
      if (table.name != name) continue;
      rows.resize(static_cast<std::size_t>(table.rows));
      columns([&](std::string_view wanted, auto member) {
        for (const Column& column : table.columns) {
          if (column.name == wanted)
            within(place(table, column), [&] { fill(rows, member, column); });
        }
      });
    }
  }

 private:
  static std::string place(const Table& table, const Column& column) {
    return fmt::format("{}.{} at byte {}", table.name, column.name, column.offset);
  }

  std::string section(const Column& column) const {
    return unpack(file_.substr(static_cast<std::size_t>(column.offset),
                               static_cast<std::size_t>(column.stored_size)),
                  column.raw_size, column.hash);
  }

  template <class Row>
  void fill(std::vector<Row>& rows, std::string Row::*member, const Column& column) {
    if (column.encoding != Encoding::text) throw TraceError("must be text");
    const std::string raw = section(column);
    const char* at = raw.data();
    const char* const end = at + raw.size();
    std::vector<std::size_t> sizes(rows.size());
    for (std::size_t& size : sizes) {
      std::uint64_t value = 0;
      if (!take_varint(at, end, value) || value > raw.size()) throw TraceError("a length is wrong");
      size = static_cast<std::size_t>(value);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (sizes[i] > static_cast<std::size_t>(end - at))
        throw TraceError("the texts end too early");
      (rows[i].*member).assign(at, sizes[i]);
      at += sizes[i];
    }
    if (at != end) throw TraceError("bytes after the last text");
  }

  template <class Row, class Value>
  void fill(std::vector<Row>& rows, Value Row::*member, const Column& column) {
    if (column.encoding == Encoding::text) throw TraceError("must be numbers");
    if (column.encoding == Encoding::constant) {
      for (Row& row : rows) set(row.*member, column.constant);
      return;
    }
    const std::string raw = section(column);
    const char* at = raw.data();
    const char* const end = at + raw.size();
    const bool delta = column.encoding == Encoding::delta;
    std::int64_t value = 0;
    for (Row& row : rows) {
      std::uint64_t folded = 0;
      if (!take_varint(at, end, folded)) throw TraceError("the numbers end too early");
      value = delta ? wrapped_sum(value, unfold(folded)) : unfold(folded);
      set(row.*member, value);
    }
    if (at != end) throw TraceError("bytes after the last number");
  }

  template <class Value>
  static void set(Value& value, std::int64_t wire) {
    if (!from_wire(wire, value))
      throw TraceError("a number is out of range: " + std::to_string(wire));
  }

  std::string_view file_;
  std::vector<Table> tables_;
};

void take_loose_rows(LooseRows& loose, Trace& trace) {
  if (loose.trace.size() != 1) throw TraceError("trace: must have one row");
  TraceRow& row = loose.trace[0];
  trace.rank = row.rank;
  trace.world_size = row.world_size;
  trace.origin_ns = row.origin_ns;
  trace.tick_ns = row.tick_ns;
  trace.has_times = row.has_times;
  trace.format = std::move(row.format);
  for (std::size_t i = 0; i < loose.names.size(); ++i) {
    if (static_cast<std::size_t>(trace.names.intern(loose.names[i].text)) != i) {
      throw TraceError("names.text: a name occurs twice, in row " + std::to_string(i));
    }
  }
  for (MetadataRow& entry : loose.metadata)
    trace.metadata[std::move(entry.key)] = std::move(entry.value);
  // There is no column for it. Every recording that knows its rank has this key in its metadata.
  trace.rank_is_known = trace.metadata.contains("distributedInfo");
  for (const Note& note : loose.notes)
    trace.notes.add(note.severity, note.text, note.example, note.count);
}

std::string read_whole(const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw TraceError(std::string("cannot be opened: ") + std::strerror(errno));
  std::string bytes;
  std::fseek(file.get(), 0, SEEK_END);
  const long size = std::ftell(file.get());
  if (size > 0) bytes.resize(static_cast<std::size_t>(size));
  std::rewind(file.get());
  const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), file.get());
  if (std::ferror(file.get()) != 0)
    throw TraceError(std::string("cannot be read: ") + std::strerror(errno));
  bytes.resize(got);
  return bytes;
}

}  // namespace

}  // namespace ftrace

Trace from_ftrace(std::string_view file) {
  ftrace::Reader reader(file);
  Trace trace;
  ftrace::LooseRows loose;
  ftrace::each_table(trace, loose, reader);
  ftrace::take_loose_rows(loose, trace);
  validate(trace);
  return trace;
}

Trace read_ftrace(const std::string& path) {
  return within(path, [&] { return from_ftrace(ftrace::read_whole(path)); });
}

}  // namespace foretrace
