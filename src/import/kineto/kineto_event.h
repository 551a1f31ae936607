#pragma once

// One event of a Chrome trace as PyTorch's profiler (Kineto) writes it:
//
//     {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10.5, "dur": 3,
//      "args": {"correlation": 12, "stream": 7, ...}}
//
// Parsing only finds the fields in the text. Nothing is copied or converted, because most events
// need few of their fields.

#include <array>
#include <cstdint>

#include "import/scan/json_scan.h"

namespace foretrace {

/// Fields of an event or its args that matter to a trace.
enum class Field : std::uint8_t {
  none,
  // Fields of the event.
  phase,
  category,
  name,
  pid,
  tid,
  start,
  duration,
  flow_id,
  args,
  // Fields of its args.
  external,
  correlation,
  sequence,
  forward_thread,
  record_function,
  shapes,
  types,
  values,
  stack,
  module,
  python_id,
  python_parent,
  device,
  stream,
  bytes,
  size,
  grid,
  block,
  registers,
  shared_memory,
  static_shared,
  graph_node,
  kind,
  label,
  from_device,
  to_device,
  sync_kind,
  wait_on_stream,
  wait_on_correlation,
  wait_on_event,
  address,
  memory_bytes,
  total_allocated,
  total_reserved,
  device_id,
  device_type,
  collective,
  in_elements,
  out_elements,
  group_size,
  dtype,
  group,
  ranks,
  collective_sequence,
  peer,
  lane_details,
  step_number,
  begin_ns,
  length_ns,
  start_end_range,
  launched_kernel,
  count
};
constexpr std::size_t kFieldCount = static_cast<std::size_t>(Field::count);
static_assert(kFieldCount <= 64);

class KinetoEvent {
 public:
  bool has(Field field) const { return (present_ >> static_cast<unsigned>(field) & 1U) != 0; }
  /// REQUIRES: has(field).
  const JsonValue& operator[](Field field) const {
    return values_[static_cast<std::size_t>(field)];
  }
  bool empty() const { return keys_ == 0; }

  std::int64_t integer(Field field, std::int64_t otherwise) const {
    if (!has(field)) return otherwise;
    const JsonValue& value = (*this)[field];
    return is_integer(value) ? to_integer(value) : otherwise;
  }
  std::string_view text(Field field) const { return has(field) ? (*this)[field].view() : ""; }

  /// Parses the object at `cursor`. Returns false, and leaves the cursor anywhere in the object, if
  /// it is incomplete or not JSON.
  bool parse(JsonCursor& cursor);

  /// Removes the mark of a rank in front of the process. Returns false if it has another or none.
  bool remove_mark(std::string_view mark) {
    if (mark.empty()) return true;
    if (!text(Field::pid).starts_with(mark)) return false;
    JsonValue& pid = values_[static_cast<std::size_t>(Field::pid)];
    pid.begin += mark.size();
    pid.size -= static_cast<std::uint32_t>(mark.size());
    return true;
  }

  std::int64_t duplicate_keys = 0;  ///< Counted over all events parsed so far.

 private:
  bool parse_args(JsonCursor& cursor);
  bool parse_value(JsonCursor& cursor, Field field);

  std::array<JsonValue, kFieldCount> values_{};
  std::uint64_t present_ = 0;
  int keys_ = 0;
};

}  // namespace foretrace
