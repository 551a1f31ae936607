#include "import/execution_traces/chakra.h"

#include <algorithm>

#include "foretrace/error.h"
#include "import/common/rank_name.h"
#include "import/execution_traces/chakra_nodes.h"
#include "import/files/registered.h"
#include "import/files/source.h"

namespace foretrace {

namespace {

constexpr std::int64_t kMaxDamaged = 1000;

bool is_printable(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

/// Whether `message` is valid and begins with a name.
bool is_attribute(std::string_view message) {
  ProtoReader fields(message);
  if (!fields.next() || fields.number() != 1 || !is_printable(fields.bytes())) return false;
  while (fields.next()) {
  }
  return !fields.damaged();
}

/// Whether `message` describes a file: field 1 is a version, and the others are attributes.
bool is_metadata(std::string_view message) {
  ProtoReader fields(message);
  while (fields.next()) {
    const bool is_version = fields.number() == 1 && is_printable(fields.bytes());
    if (!is_version && (fields.number() > 2 || !is_attribute(fields.bytes()))) return false;
  }
  return !fields.damaged();
}

/// Whether `message` begins with a field of a node; it may end early.
bool begins_as_node(std::string_view message) {
  ProtoReader fields(message);
  if (!fields.next()) return false;
  switch (fields.number()) {
    case 1:
    case 3:
      return fields.wire() == WireType::varint;
    case 2:
      return fields.wire() == WireType::bytes;
    default:
      return false;
  }
}

class ChakraFile {
 public:
  explicit ChakraFile(Source& bytes) : bytes_(bytes), stream_(bytes), nodes_(trace_) {}

  Trace read() {
    trace_.format = "chakra";
    trace_.tick_ns = 1000;
    read_messages();
    if (nodes_.count() == 0) {
      throw TraceError(stream_.is_cut()
                           ? "must contain nodes, but ends or is damaged before the first one"
                           : "must contain nodes, but has none");
    }
    write_notes();
    build_chakra_trace(nodes_.take(), trace_);
    return std::move(trace_);
  }

 private:
  void read_messages() {
    if (const auto first = stream_.delimited()) nodes_.add_metadata(*first);
    for (;;) {
      const std::int64_t offset = stream_.offset();
      const auto message = next();
      if (!message) return;
      if (nodes_.add(*message)) continue;
      if (damaged_++ == 0) first_damaged_ = offset;
      // After a wrong length, the reader no longer finds the starts of messages, so no nodes
      // follow.
      if (damaged_ > kMaxDamaged && damaged_ > static_cast<std::int64_t>(nodes_.count())) return;
    }
  }

  /// Returns the next message, or nullopt at the end of the file or at an impossible length,
  /// because everything before it is valid.
  std::optional<std::string_view> next() {
    try {
      return stream_.delimited();
    } catch (const TraceError& error) {
      if (nodes_.count() == 0) throw;
      trace_.notes.add(Severity::warning, "the trace is damaged; everything before that was read",
                       error.what());
      return std::nullopt;
    }
  }

  void write_notes() {
    nodes_.write_notes();
    const std::string damage = bytes_.damage();
    if (stream_.is_cut() || !damage.empty()) {
      note_cut(trace_.notes, "", damage, stream_.offset());
    }
    if (damaged_ > 0) {
      trace_.notes.add(Severity::warning, "messages that are not nodes, left out",
                       "at byte " + std::to_string(first_damaged_), damaged_);
    }
  }

  Source& bytes_;
  Trace trace_;
  ProtoStream stream_;
  ChakraNodes nodes_;
  std::int64_t damaged_ = 0;
  std::int64_t first_damaged_ = -1;
};

}  // namespace

bool looks_like_chakra(std::string_view head) {
  std::string_view rest = head;
  const auto size = take_varint(rest);
  if (!size || *size > rest.size() || (*size == 0 && rest.empty())) return false;
  if (!is_metadata(rest.substr(0, static_cast<std::size_t>(*size)))) return false;
  rest.remove_prefix(static_cast<std::size_t>(*size));
  const auto next = take_varint(rest);
  // A node may be longer than the head.
  return next && *next > 0 && *next <= ProtoStream::kLongest && begins_as_node(rest);
}

bool recognizes_chakra(const Sniffed& file) { return looks_like_chakra(file.head); }

Trace read_chakra(PeekedSource& bytes) { return ChakraFile(bytes).read(); }

Trace read_chakra(const TraceFile& input) {
  const auto bytes = input.open();
  Trace trace = within(input.path(), [&] { return read_chakra(*bytes); });
  if (const auto rank = rank_of_execution_trace(input.path())) trace.rank = *rank;
  trace.world_size = std::max(trace.world_size, trace.rank + 1);
  return trace;
}

}  // namespace foretrace
