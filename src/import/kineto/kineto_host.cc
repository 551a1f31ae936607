// Makes records of CPU threads.

#include "import/kineto/kineto_trace.h"

namespace foretrace {

namespace {

std::uint32_t op_details(KinetoTrace& to, const KinetoEvent& event) {
  OpDetails details;
  details.shapes = to.name(event, Field::shapes);
  details.types = to.name(event, Field::types);
  details.values = to.name(event, Field::values);
  details.stack = to.name(event, Field::stack);
  if (details.stack == NameId{}) details.stack = to.name(event, Field::module);
  details.sequence = event.integer(Field::sequence, -1);
  details.forward_thread = static_cast<std::uint64_t>(event.integer(Field::forward_thread, 0));
  // The id is 0 if no execution trace was recorded at the same time.
  const std::int64_t record_function = event.integer(Field::record_function, 0);
  if (record_function != 0) details.record_function = record_function;
  const bool says_something = details.shapes != NameId{} || details.types != NameId{} ||
                              details.values != NameId{} || details.stack != NameId{} ||
                              details.sequence != -1 || details.forward_thread != 0 ||
                              record_function != 0;
  if (!says_something) return kNone;
  to.trace.op_details.push_back(details);
  return static_cast<std::uint32_t>(to.trace.op_details.size() - 1);
}

std::uint32_t python_details(KinetoTrace& to, const KinetoEvent& event) {
  OpDetails details;
  details.python_id = event.integer(Field::python_id, -1);
  details.python_parent = event.integer(Field::python_parent, -1);
  if (details.python_id == -1 && details.python_parent == -1) return kNone;
  to.trace.op_details.push_back(details);
  return static_cast<std::uint32_t>(to.trace.op_details.size() - 1);
}

/// Calls that launch the same kernel share their details.
std::uint32_t call_details(KinetoTrace& to, const KinetoEvent& event) {
  if (!event.has(Field::launched_kernel)) return kNone;
  const NameId kernel = to.name(event, Field::launched_kernel);
  const auto [found, added] = to.launches_of_kernels.try_emplace(
      kernel, static_cast<std::uint32_t>(to.trace.op_details.size()));
  if (added) to.trace.op_details.emplace_back().kernel = kernel;
  return found->second;
}

}  // namespace

void add_host(KinetoTrace& to, const KinetoEvent& event, HostKind kind, KinetoTimes times) {
  HostRecord record;
  record.start_ns = times.start;
  record.duration_ns = times.duration;
  record.kind = kind;
  record.nests = event.integer(Field::start_end_range, 0) == 0;
  record.name = to.name(event, Field::name);
  record.thread = to.thread_of(event);
  record.external = static_cast<std::uint32_t>(event.integer(Field::external, 0));
  if (is_call(kind)) {
    record.correlation = static_cast<std::uint32_t>(event.integer(Field::correlation, 0));
    record.details = call_details(to, event);
  } else if (kind == HostKind::python) {
    record.details = python_details(to, event);
  } else {
    record.details = op_details(to, event);
  }
  to.trace.hosts.push_back(record);
}

}  // namespace foretrace
