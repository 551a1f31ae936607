#include <algorithm>

#include "base/files/new_file.h"
#include "foretrace/error.h"
#include "foretrace/trace.h"
#include "trace/ftrace_bytes.h"
#include "trace/ftrace_layout.h"
#include "trace/ftrace_section.h"
#include "trace/ftrace_tables.h"
#include "trace/varint.h"

namespace foretrace {

namespace ftrace {

namespace {

void put_fixed(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

void put_text(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out += text;
}

/// Builds the file in memory, column by column.
class Writer {
 public:
  template <class Row, class Columns>
  void table(std::string_view name, const std::vector<Row>& rows, Columns&& columns) {
    if (rows.empty()) return;
    tables_.push_back({std::string(name), rows.size(), {}});
    rows_ += rows.size();
    columns([&](std::string_view column, auto member) { add(column, rows, member); });
  }

  std::string finish() {
    const std::string index = write_index();
    pad();
    const std::size_t offset = file_.size();
    file_ += index;
    put_fixed(file_, offset, 8);
    put_fixed(file_, index.size(), 8);
    put_fixed(file_, xxh64(index), 8);
    file_ += kMagic;
    return std::move(file_);
  }

  Writer() {
    file_ = kMagic;
    put_fixed(file_, kVersion, 4);
    put_fixed(file_, 0, 4);
  }

 private:
  template <class Row>
  void add(std::string_view name, const std::vector<Row>& rows, std::string Row::*member) {
    raw_.clear();
    for (const Row& row : rows) put_varint(raw_, (row.*member).size());
    for (const Row& row : rows) raw_ += row.*member;
    add_section(name, Encoding::text);
  }

  template <class Row, class Value>
  void add(std::string_view name, const std::vector<Row>& rows, Value Row::*member) {
    const std::int64_t first = to_wire(rows[0].*member);
    std::size_t plain = 0;
    std::size_t delta = 0;
    bool constant = true;
    std::int64_t previous = 0;
    for (const Row& row : rows) {
      const std::int64_t value = to_wire(row.*member);
      constant &= value == first;
      plain += varint_size(fold(value));
      delta += varint_size(fold(wrapped_difference(value, previous)));
      previous = value;
    }
    if (constant) {
      tables_.back().columns.push_back({.name = std::string(name), .constant = first});
      return;
    }
    raw_.clear();
    previous = 0;
    for (const Row& row : rows) {
      const std::int64_t value = to_wire(row.*member);
      put_varint(raw_, fold(delta < plain ? wrapped_difference(value, previous) : value));
      previous = value;
    }
    add_section(name, delta < plain ? Encoding::delta : Encoding::plain);
  }

  void add_section(std::string_view name, Encoding encoding) {
    const std::string stored = pack(raw_);
    tables_.back().columns.push_back({.name = std::string(name),
                                      .encoding = encoding,
                                      .offset = file_.size(),
                                      .stored_size = stored.size(),
                                      .raw_size = raw_.size(),
                                      .hash = xxh64(raw_)});
    unpacked_ += raw_.size();
    file_ += stored;
  }

  std::string write_index() const {
    std::string index;
    put_varint(index, tables_.size());
    for (const Table& table : tables_) {
      put_text(index, table.name);
      put_varint(index, table.rows);
      put_varint(index, table.columns.size());
      for (const Column& column : table.columns) {
        put_text(index, column.name);
        index += static_cast<char>(column.encoding);
        if (column.encoding == Encoding::constant) {
          put_varint(index, fold(column.constant));
          continue;
        }
        put_varint(index, column.offset);
        put_varint(index, column.stored_size);
        put_varint(index, column.raw_size);
        put_fixed(index, column.hash, 8);
      }
    }
    return index;
  }

  /// Pads the file until its rows and unpacked bytes are within the reader's limits.
  void pad() {
    const std::uint64_t least =
        std::max(unpacked_ / kMaxUnpackedPerByte, rows_ / kMaxRowsPerByte) + 1;
    if (file_.size() < least) file_.resize(static_cast<std::size_t>(least), '\0');
  }

  std::string file_;
  std::string raw_;
  std::vector<Table> tables_;
  std::uint64_t rows_ = 0;
  std::uint64_t unpacked_ = 0;
};

LooseRows loose_rows(const Trace& trace) {
  LooseRows loose;
  loose.trace.push_back({trace.rank, trace.world_size, trace.origin_ns, trace.tick_ns,
                         trace.has_times, trace.format});
  for (std::uint32_t i = 0; i < trace.names.size(); ++i)
    loose.names.push_back({std::string(trace.names[NameId{i}])});
  for (const auto& [key, value] : trace.metadata) loose.metadata.push_back({key, value});
  loose.notes = trace.notes.all();
  return loose;
}

}  // namespace

}  // namespace ftrace

std::string to_ftrace(const Trace& trace) {
  ftrace::LooseRows loose = ftrace::loose_rows(trace);
  ftrace::Writer writer;
  // each_table() also serves the reader, so it needs a mutable trace. The writer does not change
  // it.
  ftrace::each_table(const_cast<Trace&>(trace), loose, writer);
  return writer.finish();
}

void write_ftrace(const Trace& trace, const std::string& path) {
  write_new_file(path, to_ftrace(trace));
}

}  // namespace foretrace
