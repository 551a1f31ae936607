#pragma once

// A report of Nsight Systems, exported to SQLite (nsys export --type sqlite). Tables and columns
// vary with the version and with what was recorded, so each is looked up and none is expected.
// Times are nanoseconds since the session began.
//
//     globalTid   hardware, machine, process, thread: 8, 8, 24 and 24 bits
//     globalPid   the same with 0 for the thread
//
// One report may contain several processes, whose correlation ids overlap. Each is a trace of its
// own, named "report.sqlite:PID".

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretrace/trace.h"
#include "import/common/intern_cache.h"
#include "import/common/nvtx_op.h"
#include "import/files/sqlite_file.h"
#include "import/kineto/kineto_lanes.h"

namespace foretrace {

/// Kinds of odd rows. Each has one line in kNsysOddTexts.
enum class NsysOdd : std::uint8_t {
  bad_time,
  negative_duration,
  open_range,
  no_name,
  invalid_text,
  unknown_event,
  named_otherwise,
  negative_bytes,
  count
};

struct NsysProcess {
  std::int64_t global = 0;  ///< globalPid.
  std::int64_t pid = 0;
  std::string name;  ///< May be empty.
  std::string member;
  std::int32_t rank = 0;
};

/// The processes of a report that a trace can be made of, in the order of their ranks.
struct NsysProcesses {
  std::vector<NsysProcess> all;
  std::int64_t left_out = 0;   ///< Processes without device work next to others with it.
  std::string first_left_out;  ///< Its name.
  bool ranks_recorded =
      false;  ///< Ranks as MPI recorded them; else they follow the order of devices and processes.
  bool told = true;  ///< Whether the rows name their process.
};

NsysProcesses find_nsys_processes(const SqliteFile& file);

/// The texts of the table StringIds.
class NsysStrings {
 public:
  NsysStrings(const SqliteFile& file, Names& names);

  std::string_view text(std::int64_t id) const;
  NameId name(std::int64_t id);
  /// The name without the version in it: "cudaLaunchKernel" for "cudaLaunchKernel_v7000".
  NameId call(std::int64_t id);
  NameId intern(std::string_view text);
  std::int64_t invalid() const { return invalid_; }

 private:
  struct Entry {
    std::string text;
    NameId name{}, call{};  ///< Set on first use.
  };
  Names& names_;
  InternCache intern_;
  std::unordered_map<std::int64_t, Entry> entries_;
  std::int64_t invalid_ = 0;
};

/// The trace of one process while its tables are read, one after the other.
class NsysReport {
 public:
  NsysReport(const SqliteFile& file, const NsysProcesses& processes, const NsysProcess& process);

  Trace read();

 private:
  struct Times {
    std::int64_t start = 0;
    std::int64_t duration = 0;
  };
  /// The record of an event, as cudaEventRecord made it.
  struct EventRecord {
    std::int64_t context = 0, event = 0, correlation = 0, sync_id = 0, device = 0, stream = 0;
  };
  /// A call, by its correlation id.
  struct CallSeen {
    NameId name{};
    std::uint16_t thread = 0;
  };
  struct NvtxText {
    std::int64_t process = 0, id = 0;
    std::string text;
  };

  void read_calls();
  void read_ranges_of(std::string_view table, HostKind kind);
  void read_nvtx();
  void read_nvtx_names();
  void add_nvtx(const SqliteRows& row);
  void take_op(const NvtxOp& op, HostRecord& record);
  bool take_category(std::int64_t domain, std::int64_t number, HostKind& kind) const;
  void take_payload(std::string_view text, HostRecord& record);
  void read_kernels();
  void read_copies();
  void read_fills();
  void read_graphs();
  void read_collectives();
  void add_device(DeviceRecord& record, const SqliteRows& row);
  void read_events();
  void read_waits();
  const EventRecord* event_of(const SqliteRows& row) const;
  SyncKind sync_kind(const SqliteRows& row, SyncKind called);
  SyncKind kind_of_call(std::uint32_t correlation) const;
  void read_memory();
  void find_memory_calls();
  std::uint16_t thread_of_memory(const SqliteRows& row);
  void read_thread_names();
  void read_devices();
  void read_old_devices();
  void read_stream_flags();
  void read_session();
  void read_export();
  void read_messages();
  void note_other_tables();
  void note_processes();
  void write_notes();

  /// Whether the row belongs to this process, by a column with a global id.
  bool is_mine(const SqliteRows& row, int column) const;
  /// Reads two columns; false if they are not times.
  bool take_times(const SqliteRows& row, int start, int end, Times& times);
  std::int64_t take_bytes(const SqliteRows& row, int column, std::string_view what);
  std::uint16_t thread(const SqliteRows& row, int column);
  std::uint16_t stream(const SqliteRows& row, int device, int stream);
  void count(NsysOdd odd, const std::string& example);

  const SqliteFile& file_;
  const NsysProcesses& processes_;
  const NsysProcess& process_;
  Trace trace_;
  NsysStrings strings_;
  KinetoLanes lanes_;
  std::unordered_map<std::uint32_t, CallSeen> calls_;
  std::vector<EventRecord> events_;         ///< By context, event and correlation.
  std::vector<EventRecord> synced_events_;  ///< By sync id.
  std::vector<NvtxText> domains_, categories_;
  std::vector<std::uint32_t> memory_calls_;  ///< Indices into Trace::hosts.
  std::int64_t session_ns_ = 0;
  std::array<std::pair<std::int64_t, std::string>, static_cast<std::size_t>(NsysOdd::count)> odd_;
};

}  // namespace foretrace
