#include "trace/validate.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <string>

#include "foretrace/error.h"

namespace foretrace {

namespace {

/// The longest duration that is accepted: 146 years.
constexpr std::int64_t kMaxTime = std::int64_t{1} << 62;

class Validator {
 public:
  explicit Validator(const Trace& trace) : trace_(trace) {}

  void check(const HostRecord& record) {
    times(record.start_ns, record.duration_ns);
    name(record.name);
    index(record.thread, trace_.threads.size(), "thread");
    optional(record.details, trace_.op_details.size(), "details");
    kind(record.kind, HostKind::overhead);
  }

  void check(const DeviceRecord& record) {
    times(record.start_ns, record.duration_ns);
    name(record.name);
    index(record.stream, trace_.streams.size(), "stream");
    optional(record.details, trace_.collectives.size(), "details");
    optional(record.launch, trace_.launches.size(), "launch");
    kind(record.kind, DeviceKind::annotation);
    kind(record.direction, CopyDirection::on_host);
    require(record.bytes >= 0, "bytes");
  }

  void check(const SyncRecord& record) {
    times(record.start_ns, record.duration_ns);
    optional(record.stream, trace_.streams.size(), "stream");
    optional(record.wait_on_stream, trace_.streams.size(), "wait_on_stream");
    kind(record.kind, SyncKind::unknown);
  }

  void check(const MemoryRecord& record) {
    times(record.time_ns, 0);
    index(record.thread, trace_.threads.size(), "thread");
    optional(record.stream, trace_.streams.size(), "stream");
    name(record.stack);
    kind(record.action, MemoryAction::snapshot);
  }

  void check(const MemorySegment& segment) {
    optional(segment.stream, trace_.streams.size(), "stream");
    name(segment.stack);
    name(segment.pool);
    require(segment.bytes >= 0, "bytes");
  }

  void check(const MemoryBlock& block) {
    index(block.segment, trace_.segments.size(), "segment");
    name(block.stack);
    kind(block.state, BlockState::inactive);
    require(block.bytes >= 0, "bytes");
  }

  void check(const TensorRecord& tensor) {
    index(tensor.host, trace_.hosts.size(), "host");
    name(tensor.type);
    name(tensor.shape);
    require(tensor.bytes >= 0, "bytes");
  }

  void check(const LinkRecord& record) {
    times(record.time_ns, 0);
    index(record.thread, trace_.threads.size(), "thread");
  }

  void check(const OpDetails& details) {
    for (const NameId id :
         {details.shapes, details.types, details.values, details.stack, details.kernel})
      name(id);
  }

  void check(const CapturedNode& node) {
    for (const NameId id :
         {node.path, node.op, node.shapes, node.types, node.values, node.module, node.stack})
      name(id);
  }

  void check(const CollectiveDetails& details) {
    for (const NameId id : {details.collective, details.dtype, details.group, details.ranks})
      name(id);
  }

  void check(const Note& note) { kind(note.severity, Severity::warning); }

  template <class Rows>
  void table(const char* name, const Rows& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      wrong_ = nullptr;
      check(rows[i]);
      if (wrong_ == nullptr) continue;
      throw TraceError(fmt::format("{}, row {}: the {} is impossible", name, i, wrong_));
    }
  }

 private:
  void require(bool holds, const char* field) {
    if (!holds && wrong_ == nullptr) wrong_ = field;
  }
  void times(std::int64_t start, std::int64_t duration) {
    require(start >= 0, "time");
    require(duration >= 0 && duration <= kMaxTime, "duration");
    require(duration <= std::numeric_limits<std::int64_t>::max() - start, "end");
  }
  void name(NameId id) { require(static_cast<std::size_t>(id) < trace_.names.size(), "name"); }
  void index(std::size_t value, std::size_t size, const char* field) {
    require(value < size, field);
  }
  void optional(std::uint32_t value, std::size_t size, const char* field) {
    require(value == kNone || value < size, field);
  }
  template <class Kind>
  void kind(Kind value, Kind last) {
    require(value <= last, "kind");
  }

  const Trace& trace_;
  const char* wrong_ = nullptr;
};

}  // namespace

void validate(const Trace& trace) {
  Validator validator(trace);
  validator.table("hosts", trace.hosts);
  validator.table("devices", trace.devices);
  validator.table("syncs", trace.syncs);
  validator.table("memory", trace.memory);
  validator.table("segments", trace.segments);
  validator.table("blocks", trace.blocks);
  validator.table("links", trace.links);
  validator.table("tensors", trace.tensors);
  validator.table("op_details", trace.op_details);
  validator.table("captured", trace.captured);
  const auto sorted = [](const CapturedNode& a, const CapturedNode& b) { return a.node < b.node; };
  if (!std::is_sorted(trace.captured.begin(), trace.captured.end(), sorted))
    throw TraceError("captured: the nodes are not in order");
  validator.table("collectives", trace.collectives);
  validator.table("notes", trace.notes.all());
  if (trace.world_size < 1 || trace.rank < 0)
    throw TraceError("the rank or the size of the job is impossible");
  if (trace.tick_ns < 1) throw TraceError("the resolution of time is impossible");
}

}  // namespace foretrace
