#include <algorithm>
#include <fmt/core.h>

#include "export/common/registered.h"
#include "export/nsys/nsys_report.h"
#include "foretrace/error.h"

namespace foretrace {

namespace {

constexpr std::int64_t kMaxId = 0xffffff;

/// The process that calls CUDA. An export has one process, even if the threads name several.
std::int64_t process_of(const Trace& trace) {
  for (const HostRecord& record : trace.hosts) {
    if (is_call(record.kind)) return trace.threads[record.thread].process;
  }
  return trace.threads.empty() ? 1 : trace.threads.front().process;
}

}  // namespace

NsysTexts::NsysTexts(SqliteWriter& writer, const Names& names)
    : names_(names),
      rows_(writer, "StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL"),
      ids_(names.size(), -1) {}

std::int64_t NsysTexts::id(NameId name) {
  std::int64_t& known = ids_[static_cast<std::size_t>(name)];
  if (known >= 0) return known;
  known = next_++;
  rows_.add({known, names_[name]});
  return known;
}

std::int64_t NsysTexts::id(std::string_view text) {
  if (const NameId name = names_.find(text); name != NameId{}) return id(name);
  const auto known = others_.find(text);
  if (known != others_.end()) return known->second;
  rows_.add({next_, text});
  others_.emplace(text, next_);
  return next_++;
}

NsysThreads::NsysThreads(const Trace& trace) {
  const std::int64_t process = process_of(trace);
  if (process >= 1 && process <= kMaxId) pid_ = process;
  std::map<std::int64_t, bool> taken;
  for (const Thread& thread : trace.threads) {
    const bool fits = thread.process == process && thread.id >= 1 && thread.id <= kMaxId;
    ids_.push_back(fits && taken.emplace(thread.id, true).second ? thread.id : 0);
  }
  std::int64_t next = kMaxId;
  for (std::int64_t& id : ids_) {
    while (id == 0 && !taken.emplace(next, true).second) --next;
    if (id == 0) id = next--;
  }
}

NsysExport::NsysExport(const Trace& trace, SqliteWriter& writer)
    : trace_(trace), writer_(writer), texts_(writer, trace.names), threads_(trace) {}

void NsysExport::write() {
  write_calls();
  write_ranges();
  write_overheads();
  write_collectives();
  write_kernels();
  write_copies();
  write_fills();
  write_waits();
  write_memory();
  write_process();
  write_machine();
  write_streams();
  write_session();
  write_enums();
}

void NsysExport::write_calls() {
  SqliteInsert rows(writer_, "CUPTI_ACTIVITY_KIND_RUNTIME",
                    "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
                    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, "
                    "returnValue INTEGER NOT NULL, callchainId INTEGER, externalId INTEGER");
  for (const HostRecord& record : trace_.hosts) {
    if (!is_call(record.kind)) continue;
    rows.add({record.start_ns, record.start_ns + record.duration_ns,
              std::int64_t{record.kind == HostKind::driver}, threads_.global_tid(record.thread),
              std::int64_t{record.correlation}, texts_.id(record.name), std::int64_t{0},
              std::nullopt, std::int64_t{record.external}});
  }
}

void NsysExport::write_overheads() {
  const auto is_overhead = [](const HostRecord& record) {
    return record.kind == HostKind::overhead;
  };
  if (std::none_of(trace_.hosts.begin(), trace_.hosts.end(), is_overhead)) return;
  SqliteInsert rows(writer_, "PROFILER_OVERHEAD",
                    "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, "
                    "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL");
  for (const HostRecord& record : trace_.hosts) {
    if (!is_overhead(record)) continue;
    rows.add({record.start_ns, record.start_ns + record.duration_ns,
              threads_.global_tid(record.thread), texts_.id(record.name), std::int64_t{0}});
  }
}

void export_nsys(const Trace& trace, const std::string& path) {
  if (!trace.has_times)
    throw Error(
        fmt::format("a trace without times, such as an execution trace, cannot become '{}'", path));
  if (trace.hosts.empty() && trace.devices.empty() && trace.memory.empty())
    throw Error(fmt::format(
        "'{}' needs records of a host, a device or its memory, but the trace has none", path));
  SqliteWriter writer(path);
  NsysExport(trace, writer).write();
  writer.finish();
}

}  // namespace foretrace
