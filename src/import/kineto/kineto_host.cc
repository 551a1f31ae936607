// Records of CPU threads.

#include "import/kineto/kineto_records.h"

namespace foretrace {

void KinetoRecords::add_host(const KinetoEvent& event, HostKind kind, Times times) {
  HostRecord record;
  record.start_ns = times.start;
  record.duration_ns = times.duration;
  record.kind = kind;
  record.name = name(event, Field::name);
  record.thread = thread_of(event);
  record.external = static_cast<std::uint32_t>(event.integer(Field::external, 0));
  if (is_call(kind)) {
    record.correlation = static_cast<std::uint32_t>(event.integer(Field::correlation, 0));
    // ROCm writes the bytes of a copy at the call, not always at the copy.
    const Field bytes = event.has(Field::bytes) ? Field::bytes : Field::size;
    if (event.has(bytes) && record.correlation != 0) {
      call_bytes_.push_back({record.correlation, event.integer(bytes, 0)});
    }
  } else if (kind == HostKind::python) {
    record.details = python_details(event);
  } else {
    record.details = op_details(event);
  }
  trace_.hosts.push_back(record);
}

std::uint32_t KinetoRecords::op_details(const KinetoEvent& event) {
  OpDetails details;
  details.shapes = name(event, Field::shapes);
  details.types = name(event, Field::types);
  details.values = name(event, Field::values);
  details.stack = name(event, Field::stack);
  if (details.stack == NameId{}) details.stack = name(event, Field::module);
  details.sequence = event.integer(Field::sequence, -1);
  details.forward_thread = static_cast<std::uint64_t>(event.integer(Field::forward_thread, 0));
  // 0 if no execution trace was written at the same time.
  const std::int64_t record_function = event.integer(Field::record_function, 0);
  if (record_function != 0) details.record_function = record_function;
  const bool says_something = details.shapes != NameId{} || details.types != NameId{} ||
                              details.values != NameId{} || details.stack != NameId{} ||
                              details.sequence != -1 || details.forward_thread != 0 ||
                              record_function != 0;
  if (!says_something) return kNone;
  trace_.op_details.push_back(details);
  return static_cast<std::uint32_t>(trace_.op_details.size() - 1);
}

std::uint32_t KinetoRecords::python_details(const KinetoEvent& event) {
  OpDetails details;
  details.python_id = event.integer(Field::python_id, -1);
  details.python_parent = event.integer(Field::python_parent, -1);
  if (details.python_id == -1 && details.python_parent == -1) return kNone;
  trace_.op_details.push_back(details);
  return static_cast<std::uint32_t>(trace_.op_details.size() - 1);
}

}  // namespace foretrace
