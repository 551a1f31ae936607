#pragma once

// A trace as the tables that Nsight Systems exports to SQLite, so that scripts made for those run.
// Ops, annotations and Python frames become NVTX ranges. Facts that have no place in a table are
// put where other readers ignore them: in columns after the usual ones, in the category and the
// JSON payload of a range, in META_DATA_EXPORT. Records without times are left out: segments and
// blocks of an allocator, tensors, links, stacks; so are annotations of the device, which nsys
// derives.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "export/nsys/sqlite_writer.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Context of every row: the tables have contexts, a trace does not.
inline constexpr std::int64_t kContext = 1;

/// The table StringIds while it fills.
class NsysTexts {
 public:
  NsysTexts(SqliteWriter& writer, const Names& names);

  std::int64_t id(NameId name);
  std::int64_t id(std::string_view text);

 private:
  const Names& names_;
  SqliteInsert rows_;
  std::vector<std::int64_t> ids_;  ///< Ids of names; -1: not yet assigned.
  std::map<std::string, std::int64_t, std::less<>> others_;
  std::int64_t next_ = 0;
};

/// Numbers of 24 bits for threads: their own where they fit and are the only ones.
class NsysThreads {
 public:
  explicit NsysThreads(const Trace& trace);

  std::int64_t pid() const { return pid_; }
  std::int64_t global_pid() const { return kMachine | pid_ << 24; }
  std::int64_t global_tid(std::size_t thread) const { return global_pid() | ids_[thread]; }

 private:
  static constexpr std::int64_t kMachine = std::int64_t{1} << 48;
  std::int64_t pid_ = 1;
  std::vector<std::int64_t> ids_;
};

class NsysExport {
 public:
  NsysExport(const Trace& trace, SqliteWriter& writer);

  void write();

 private:
  void write_calls();
  void write_ranges();
  void write_overheads();
  std::string payload(const HostRecord& record) const;
  void write_kernels();
  void write_copies();
  void write_fills();
  void write_collectives();
  void write_waits();
  void write_memory();
  void write_machine();
  void write_streams();
  void write_session();
  void write_process();
  void write_enums();

  std::int64_t device_of(const DeviceRecord& record) const {
    return trace_.streams[record.stream].device;
  }
  std::int64_t stream_of(const DeviceRecord& record) const {
    return trace_.streams[record.stream].id;
  }

  const Trace& trace_;
  SqliteWriter& writer_;
  NsysTexts texts_;
  NsysThreads threads_;
};

}  // namespace foretrace
