#pragma once

// Writes a trace as the tables that Nsight Systems exports to SQLite, for scripts that use these
// tables. Ops, annotations and Python frames become NVTX ranges. Facts without a place in a table
// go where other readers ignore them: into columns after the usual ones, into the category and the
// JSON payload of a range, into META_DATA_EXPORT. Left out are the segments and blocks of an
// allocator, tensors, links and stacks, as well as annotations of the device, which nsys derives.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "export/nsys/sqlite_writer.h"
#include "foretrace/trace.h"

namespace foretrace {

/// The context in every row, because the tables need one and a trace has none.
inline constexpr std::int64_t kContext = 1;

/// Writes the table StringIds and assigns an id to each text on its first use.
class NsysTexts {
 public:
  NsysTexts(SqliteWriter& writer, const Names& names);

  std::int64_t id(NameId name);
  std::int64_t id(std::string_view text);

 private:
  const Names& names_;
  SqliteInsert rows_;
  std::vector<std::int64_t> ids_;  ///< Ids of names; -1 if not yet assigned.
  std::map<std::string, std::int64_t, std::less<>> others_;
  std::int64_t next_ = 0;
};

/// Assigns 24-bit ids to threads: their own ids if these fit and are unique.
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
