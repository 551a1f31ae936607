#include "import/kineto/kineto_event.h"

#include "import/common/word_table.h"

namespace foretrace {

namespace {

constexpr WordTable<Field, 64> kEventKeys{
    {"ph", Field::phase},     {"cat", Field::category}, {"name", Field::name},
    {"pid", Field::pid},      {"tid", Field::tid},      {"ts", Field::start},
    {"dur", Field::duration}, {"id", Field::flow_id},   {"args", Field::args},
};

constexpr WordTable<Field> kArgKeys{
    {"External id", Field::external},
    {"external id", Field::external},
    {"correlation", Field::correlation},
    {"Sequence number", Field::sequence},
    {"Fwd thread id", Field::forward_thread},
    {"Record function id", Field::record_function},
    {"Input Dims", Field::shapes},
    {"Input dims", Field::shapes},
    {"Input type", Field::types},
    {"Concrete Inputs", Field::values},
    {"Call stack", Field::stack},
    {"Module Hierarchy", Field::module},
    {"Python id", Field::python_id},
    {"Python parent id", Field::python_parent},
    {"device", Field::device},
    {"stream", Field::stream},
    {"bytes", Field::bytes},
    {"size", Field::size},
    {"grid", Field::grid},
    {"block", Field::block},
    {"registers per thread", Field::registers},
    {"shared memory", Field::shared_memory},
    {"static shared memory", Field::static_shared},
    {"graph node id", Field::graph_node},
    {"kind", Field::kind},
    {"name", Field::label},
    {"fromDevice", Field::from_device},
    {"toDevice", Field::to_device},
    {"cuda_sync_kind", Field::sync_kind},
    {"wait_on_stream", Field::wait_on_stream},
    {"wait_on_cuda_event_record_corr_id", Field::wait_on_correlation},
    {"wait_on_cuda_event_id", Field::wait_on_event},
    {"Addr", Field::address},
    {"Bytes", Field::memory_bytes},
    {"Total Allocated", Field::total_allocated},
    {"Total Reserved", Field::total_reserved},
    {"Device Id", Field::device_id},
    {"Device Type", Field::device_type},
    {"Collective name", Field::collective},
    {"In msg nelems", Field::in_elements},
    {"In msg size", Field::in_elements},
    {"Out msg nelems", Field::out_elements},
    {"Out msg size", Field::out_elements},
    {"Group size", Field::group_size},
    {"dtype", Field::dtype},
    {"Process Group Name", Field::group},
    {"Process Group ID", Field::group},
    {"Process Group Ranks", Field::ranks},
    {"Seq", Field::collective_sequence},
    {"Src Rank", Field::peer},
    {"Dst Rank", Field::peer},
    {"correlation_id", Field::correlation},
    {"cuda_graph_node_id", Field::graph_node},
    {"kernel_details", Field::lane_details},
    {"memcpy_details", Field::lane_details},
    {"memset_details", Field::lane_details},
    {"step_num", Field::step_number},
    {"BeginNs", Field::begin_ns},
    {"DurationNs", Field::length_ns},
    {"start/end range", Field::start_end_range},
    {"kernel", Field::launched_kernel},
};

/// Reads a key and its colon. Returns false if there is none.
bool scan_key(JsonCursor& cursor, JsonValue& key) {
  cursor.in_key = true;
  const bool found = cursor.scan_text(key) && cursor.peek() == ':';
  cursor.in_key = false;
  if (found) ++cursor.at;
  return found;
}

enum class KeyToken { key, end, broken };

/// Reads the separator after '{' or a value. Returns `key` if a key follows.
KeyToken next_key(JsonCursor& cursor, bool first) {
  char c = cursor.peek();
  if (!first && c == ',') {
    ++cursor.at;
    c = cursor.peek();
    if (c == '}') ++cursor.odd.trailing_commas;
  } else if (!first && c != '}') {
    return KeyToken::broken;
  }
  if (c == '}') {
    ++cursor.at;
    return KeyToken::end;
  }
  return c == '"' ? KeyToken::key : KeyToken::broken;
}

}  // namespace

bool KinetoEvent::parse_value(JsonCursor& cursor, Field field) {
  // Scanning straight into values_ avoids a copy, which would have to wait for the stores. The slot
  // of Field::none takes all values that are not needed.
  if (!cursor.scan_value(values_[static_cast<std::size_t>(field)])) return false;
  if (field == Field::none) return true;
  if (has(field)) ++duplicate_keys;
  present_ |= std::uint64_t{1} << static_cast<unsigned>(field);
  return true;
}

bool KinetoEvent::parse(JsonCursor& cursor) {
  present_ = 0;
  keys_ = 0;
  ++cursor.at;
  JsonValue key;
  for (;; ++keys_) {
    const KeyToken token = next_key(cursor, keys_ == 0);
    if (token != KeyToken::key) return token == KeyToken::end;
    if (!scan_key(cursor, key)) return false;
    const Field field = kEventKeys.find(key.view());
    const bool is_args = field == Field::args && cursor.peek() == '{';
    if (is_args ? !parse_args(cursor) : !parse_value(cursor, field)) return false;
  }
}

bool KinetoEvent::parse_args(JsonCursor& cursor) {
  ++cursor.at;
  JsonValue key;
  for (bool first = true;; first = false) {
    const KeyToken token = next_key(cursor, first);
    if (token != KeyToken::key) return token == KeyToken::end;
    if (!scan_key(cursor, key)) return false;
    if (!parse_value(cursor, kArgKeys.find(key.view()))) return false;
  }
}

}  // namespace foretrace
