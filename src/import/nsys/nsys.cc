#include <algorithm>

#include "foretrace/error.h"
#include "import/common/times.h"
#include "import/files/registered.h"
#include "import/files/sniff.h"
#include "import/nsys/nsys_readers.h"

namespace foretrace {

namespace {

Trace read_process(const SqliteFile& file, const NsysProcesses& processes,
                   const NsysProcess& process) {
  Trace trace;
  trace.format = "nsys";
  trace.rank = process.rank;
  trace.world_size =
      processes.ranks_recorded || processes.all.size() > 1
          ? std::max(static_cast<std::int32_t>(processes.all.size()), processes.all.back().rank + 1)
          : 1;
  NsysTables tables(file, processes, process, trace);
  const std::int64_t session_ns = read_nsys_machine(tables);
  read_nsys_collectives(tables);
  const NsysCalls calls = read_nsys_calls(tables);
  read_nsys_ranges(tables);
  read_nsys_nvtx(tables);
  read_nsys_device_work(tables);
  read_nsys_waits(tables, calls);
  read_nsys_memory(tables, calls);
  read_nsys_stream_flags(tables);
  read_nsys_thread_names(tables);
  make_times_relative(trace, session_ns);
  tables.lanes.finish();
  note_nsys_report(tables);
  tables.write_notes();
  return trace;
}

}  // namespace

bool recognizes_nsys(const Sniffed& file) { return file.database.kind == SqliteKind::nsys; }

std::vector<std::string> members_of_nsys(const TraceFile& input) {
  return within(input.path(), [&] {
    const SqliteFile file(input);
    std::vector<std::string> members;
    for (const NsysProcess& process : find_nsys_processes(file).all)
      members.push_back(process.member);
    return members;
  });
}

Trace read_nsys(const TraceFile& input) {
  return within(input.path(), [&] {
    const SqliteFile file(input);
    const NsysProcesses processes = find_nsys_processes(file);
    const auto found =
        std::find_if(processes.all.begin(), processes.all.end(), [&](const NsysProcess& process) {
          return input.part().empty() || process.member == input.part();
        });
    if (found == processes.all.end()) {
      std::string all;
      for (const NsysProcess& process : processes.all)
        all += (all.empty() ? "" : ", ") + process.member;
      throw TraceError("the report has no such process; its processes with device work are " + all);
    }
    return read_process(file, processes, *found);
  });
}

}  // namespace foretrace
