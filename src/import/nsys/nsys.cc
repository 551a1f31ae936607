#include <algorithm>

#include "foretrace/error.h"
#include "import/files/registered.h"
#include "import/files/sqlite_kind.h"
#include "import/nsys/nsys_file.h"

namespace foretrace {

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
      throw TraceError("the report has no such process; those with device work are " + all);
    }
    return NsysReport(file, processes, *found).read();
  });
}

}  // namespace foretrace
