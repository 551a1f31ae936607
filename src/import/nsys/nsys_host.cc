// Reads calls of CUDA and other work on threads of the process.

#include "import/nsys/nsys_readers.h"

namespace foretrace {

namespace {

constexpr std::int64_t kDriverClass = 1;
constexpr std::int64_t kRuntimeClass = 0;

/// Newer event classes contain both kinds of calls. Then the name decides: the runtime's functions
/// begin with "cuda", the driver's with "cu".
HostKind kind_of(std::int64_t event_class, std::string_view name) {
  if (event_class == kDriverClass) return HostKind::driver;
  if (event_class == kRuntimeClass) return HostKind::runtime;
  return name.starts_with("cuda") || !name.starts_with("cu") ? HostKind::runtime : HostKind::driver;
}

void read_ranges_of(NsysTables& tables, std::string_view table, HostKind kind) {
  SqliteRows rows(tables.file, table, {"start", "end", "globalTid", "nameId"});
  for (HostRecord record; tables.next(rows, record);) {
    record.thread = tables.thread(rows, 2);
    record.name = tables.strings.call(rows.integer(3, -1));
    if (record.name == NameId{})
      record.name = tables.trace.names.intern("(overhead of the profiler)");
    record.kind = kind;
    tables.trace.hosts.push_back(record);
  }
}

}  // namespace

NsysCalls read_nsys_calls(NsysTables& tables) {
  NsysCalls calls;
  SqliteRows rows(
      tables.file, "CUPTI_ACTIVITY_KIND_RUNTIME",
      {"start", "end", "globalTid", "correlationId", "nameId", "eventClass", "externalId"});
  for (HostRecord record; tables.next(rows, record);) {
    record.thread = tables.thread(rows, 2);
    record.correlation = static_cast<std::uint32_t>(rows.integer(3));
    record.external = static_cast<std::uint32_t>(rows.integer(6));
    record.name = tables.strings.call(rows.integer(4, -1));
    if (record.name == NameId{}) {
      tables.count(NsysOddity::no_name, "call " + std::to_string(rows.number()));
      record.name = tables.trace.names.intern("(unnamed call)");
    }
    record.kind = kind_of(rows.integer(5, -1), tables.trace.names[record.name]);
    if (record.correlation != 0)
      calls.try_emplace(record.correlation, NsysCall{record.name, record.thread});
    tables.trace.hosts.push_back(record);
  }
  return calls;
}

void read_nsys_ranges(NsysTables& tables) {
  read_ranges_of(tables, "CUDNN_EVENTS", HostKind::annotation);
  read_ranges_of(tables, "CUBLAS_EVENTS", HostKind::annotation);
  read_ranges_of(tables, "CUPTI_ACTIVITY_KIND_OVERHEAD", HostKind::overhead);
  read_ranges_of(tables, "PROFILER_OVERHEAD", HostKind::overhead);
}

void read_nsys_thread_names(NsysTables& tables) {
  SqliteRows rows(tables.file, "ThreadNames", {"globalTid", "nameId"});
  while (rows.next()) {
    if (!rows.has(0) || !tables.is_mine(rows, 0)) continue;
    const std::string_view name = tables.strings.text(rows.integer(1, -1));
    if (!name.empty())
      tables.name_thread(rows.integer(0), tables.trace.names[tables.strings.intern(name)]);
  }
}

}  // namespace foretrace
