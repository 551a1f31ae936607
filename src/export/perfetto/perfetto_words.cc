#include "export/perfetto/perfetto_words.h"

#include "export/common/copy_name.h"
#include "export/common/profiler_words.h"
#include "trace/launch_shape.h"

namespace foretrace {
namespace {

void add_unless(std::int64_t absent, std::string_view key, std::int64_t value,
                PerfettoPackets& out) {
  if (value != absent) out.argument(key, value);
}

void add_text(const Trace& trace, std::string_view key, NameId text, PerfettoPackets& out) {
  if (text != NameId{}) out.argument(key, trace.names[text]);
}

void add_stream(const Trace& trace, std::string_view key, std::uint32_t stream,
                PerfettoPackets& out) {
  if (stream != kNone) out.argument(key, trace.streams[stream].id);
}

}  // namespace

int perfetto_depth(HostKind kind) {
  if (kind == HostKind::annotation) return 0;
  if (kind == HostKind::python) return 1;
  return kind == HostKind::op ? 2 : 3;
}

void describe_host(const Trace& trace, const HostRecord& record, PerfettoPackets& out) {
  out.name(trace.names[record.name]);
  out.category(category_of(record.kind));
  add_unless(0, "correlation", record.correlation, out);
  add_unless(0, "External id", record.external, out);
  add_unless(0, "start/end range", record.nests ? 0 : 1, out);
  const Thread& thread = trace.threads[record.thread];
  constexpr std::int64_t kMost = 0x7fffffff;
  if (thread.process < 0 || thread.process > kMost || thread.id < 0 || thread.id > kMost) {
    out.argument("process", thread.process);
    out.argument("thread", thread.id);
  }
  if (record.details == kNone) return;
  const OpDetails& details = trace.op_details[record.details];
  add_text(trace, "Input Dims", details.shapes, out);
  add_text(trace, "Input type", details.types, out);
  add_text(trace, "Concrete Inputs", details.values, out);
  add_text(trace, "Call stack", details.stack, out);
  add_unless(-1, "Sequence number", details.sequence, out);
  if (details.forward_thread != 0) out.argument_unsigned("Fwd thread id", details.forward_thread);
  add_unless(-1, "Record function id", details.record_function, out);
  add_unless(-1, "Python id", details.python_id, out);
  add_unless(-1, "Python parent id", details.python_parent, out);
}

void describe_device(const Trace& trace, const DeviceRecord& record, PerfettoPackets& out) {
  if (record.kind == DeviceKind::copy) {
    out.name(copy_name(trace, record));
  } else {
    out.name(trace.names[record.name]);
  }
  out.category(category_of(record.kind));
  out.argument("device", std::int64_t{trace.streams[record.stream].device});
  add_stream(trace, "stream", record.stream, out);
  add_unless(0, "correlation", record.correlation, out);
  add_unless(0, "External id", record.external, out);
  if (record.graph_node != 0) out.argument_unsigned("graph node id", record.graph_node);
  add_unless(0, "bytes", record.bytes, out);
  add_unless(0, "grid", record.grid, out);
  add_unless(0, "block", record.block, out);
  if (record.launch != kNone) {
    const LaunchShape& shape = trace.launches[record.launch];
    each_launch_field([&](std::string_view name, auto member) {
      add_unless(0, name, std::int64_t{shape.*member}, out);
    });
  }
  if (record.direction != CopyDirection::none) out.argument("kind", copy_sign(record.direction));
  if (record.kind != DeviceKind::kernel || record.details == kNone) return;
  const CollectiveDetails& details = trace.collectives[record.details];
  out.argument("Collective name", trace.names[details.collective]);
  add_text(trace, "dtype", details.dtype, out);
  add_text(trace, "Process Group Name", details.group, out);
  add_text(trace, "Process Group Ranks", details.ranks, out);
  out.argument("In msg nelems", details.in_elements);
  out.argument("Out msg nelems", details.out_elements);
  out.argument("Group size", std::int64_t{details.group_size});
  add_unless(-1, "Seq", details.sequence, out);
}

void describe_sync(const Trace& trace, const SyncRecord& record, PerfettoPackets& out) {
  const std::uint32_t known = record.stream != kNone ? record.stream : record.wait_on_stream;
  out.name("wait: " + std::string(to_string(record.kind)));
  out.category("cuda_sync");
  out.argument("sync", to_string(record.kind));
  if (known != kNone) out.argument("device", std::int64_t{trace.streams[known].device});
  add_stream(trace, "stream", record.stream, out);
  add_stream(trace, "wait_on_stream", record.wait_on_stream, out);
  add_unless(0, "correlation", record.correlation, out);
  add_unless(0, "wait_on_cuda_event_record_corr_id", record.wait_on_correlation, out);
  add_unless(0, "wait_on_cuda_event_id", record.event, out);
}

void describe_memory(const Trace& trace, const MemoryRecord& record, PerfettoPackets& out) {
  out.name("[memory]");
  out.category("cpu_instant_event");
  out.argument("Bytes", record.bytes);
  if (record.address != 0) out.argument_unsigned("Addr", record.address);
  add_unless(-1, "Total Allocated", record.total_allocated, out);
  add_unless(-1, "Total Reserved", record.total_reserved, out);
  out.argument("Device Id", std::int64_t{record.device});
  if (record.action != MemoryAction::block) out.argument("action", to_string(record.action));
  if (record.stream != kNone)
    out.argument("stream device", std::int64_t{trace.streams[record.stream].device});
  add_stream(trace, "stream", record.stream, out);
  add_text(trace, "Call stack", record.stack, out);
}

}  // namespace foretrace
