#pragma once

// A report of Nsight Systems, exported to SQLite (nsys export --type sqlite). Tables and columns
// depend on the version and on the recorded activities, so readers must cope without any of them.
// Times are nanoseconds since the session began.
//
//     globalTid   hardware, machine, process, thread: 8, 8, 24 and 24 bits
//     globalPid   the same with 0 for the thread

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "foretrace/trace.h"
#include "import/common/intern_cache.h"
#include "import/common/launch_shapes.h"
#include "import/files/sqlite_file.h"
#include "import/kineto/kineto_lanes.h"
#include "import/nsys/nsys_processes.h"

namespace foretrace {

/// Kinds of odd rows. Each has one line in kNsysOddityNotes.
enum class NsysOddity : std::uint8_t {
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

/// The state that the readers of all tables share: the tables of one process of a report, and the
/// trace under construction.
class NsysTables {
 public:
  struct Times {
    std::int64_t start = 0;
    std::int64_t duration = 0;
  };

  /// REQUIRES: all arguments outlive this.
  NsysTables(const SqliteFile& file, const NsysProcesses& processes, const NsysProcess& process,
             Trace& trace);

  /// Goes to the next row of this process whose times are possible, and sets `record` to a new
  /// record with these times. Returns false at the end. REQUIRES: columns 0 to 2 are start, end and
  /// a global id.
  template <class Record>
  bool next(SqliteRows& rows, Record& record) {
    while (rows.next()) {
      Times times;
      if (!is_mine(rows, 2) || !take_times(rows, 0, 1, times)) continue;
      record = {};
      record.start_ns = times.start;
      record.duration_ns = times.duration;
      return true;
    }
    return false;
  }
  /// Whether the row belongs to this process. REQUIRES: the column has a global id.
  bool is_mine(const SqliteRows& row, int column) const;
  /// Reads times from two columns. Returns false, and counts the row, if they are impossible.
  bool take_times(const SqliteRows& row, int start, int end, Times& times);
  std::int64_t take_bytes(const SqliteRows& row, int column, std::string_view place);
  std::uint16_t thread(const SqliteRows& row, int column);
  std::uint16_t stream(const SqliteRows& row, int device, int stream);
  /// The device of a context, as its device work shows it; `recorded` if it has none. Rows of
  /// synchronizations and events say device 0 whatever the context, but name the right context.
  std::int64_t device_of_context(std::int64_t context, std::int64_t recorded) const;
  void name_thread(std::int64_t global, std::string_view name);
  void count(NsysOddity oddity, const std::string& example);
  /// Adds a note for each kind of odd row that was counted.
  void write_notes();

  const SqliteFile& file;
  const NsysProcesses& processes;
  const NsysProcess& process;
  Trace& trace;
  NsysStrings strings;
  KinetoLanes lanes;
  LaunchShapes launches;
  std::unordered_map<std::int64_t, std::int64_t> devices_of_contexts;

 private:
  std::array<std::pair<std::int64_t, std::string>, static_cast<std::size_t>(NsysOddity::count)>
      odd_;
};

}  // namespace foretrace
