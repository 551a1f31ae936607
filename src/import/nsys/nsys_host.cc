// Calls of CUDA and other work on threads of the process.

#include "import/nsys/nsys_file.h"

namespace foretrace {

namespace {

constexpr std::int64_t kDriverClass = 1;
constexpr std::int64_t kRuntimeClass = 0;

/// Newer classes contain both: the runtime's functions begin with "cuda", the driver's with "cu".
HostKind kind_of(std::int64_t event_class, std::string_view name) {
  if (event_class == kDriverClass) return HostKind::driver;
  if (event_class == kRuntimeClass) return HostKind::runtime;
  return name.starts_with("cuda") || !name.starts_with("cu") ? HostKind::runtime : HostKind::driver;
}

}  // namespace

void NsysReport::read_calls() {
  SqliteRows rows(
      file_, "CUPTI_ACTIVITY_KIND_RUNTIME",
      {"start", "end", "globalTid", "correlationId", "nameId", "eventClass", "externalId"});
  while (rows.next()) {
    Times times;
    if (!is_mine(rows, 2) || !take_times(rows, 0, 1, times)) continue;
    HostRecord record;
    record.start_ns = times.start;
    record.duration_ns = times.duration;
    record.thread = thread(rows, 2);
    record.correlation = static_cast<std::uint32_t>(rows.integer(3));
    record.external = static_cast<std::uint32_t>(rows.integer(6));
    record.name = strings_.call(rows.integer(4, -1));
    if (record.name == NameId{}) {
      count(NsysOdd::no_name, "call " + std::to_string(rows.number()));
      record.name = trace_.names.intern("(unnamed call)");
    }
    record.kind = kind_of(rows.integer(5, -1), trace_.names[record.name]);
    if (record.correlation != 0)
      calls_.try_emplace(record.correlation, CallSeen{record.name, record.thread});
    trace_.hosts.push_back(record);
  }
}

void NsysReport::read_ranges_of(std::string_view table, HostKind kind) {
  SqliteRows rows(file_, table, {"start", "end", "globalTid", "nameId"});
  while (rows.next()) {
    Times times;
    if (!is_mine(rows, 2) || !take_times(rows, 0, 1, times)) continue;
    HostRecord record;
    record.start_ns = times.start;
    record.duration_ns = times.duration;
    record.thread = thread(rows, 2);
    record.name = strings_.call(rows.integer(3, -1));
    if (record.name == NameId{}) record.name = trace_.names.intern("(overhead of the profiler)");
    record.kind = kind;
    trace_.hosts.push_back(record);
  }
}

void NsysReport::read_thread_names() {
  SqliteRows rows(file_, "ThreadNames", {"globalTid", "nameId"});
  while (rows.next()) {
    if (!rows.has(0) || !is_mine(rows, 0)) continue;
    const std::string_view name = strings_.text(rows.integer(1, -1));
    const std::int64_t global = rows.integer(0);
    if (!name.empty()) {
      lanes_.name_thread((global >> 24) & 0xffffff, global & 0xffffff,
                         trace_.names[strings_.intern(name)]);
    }
  }
}

}  // namespace foretrace
