#pragma once

// A report may contain several processes, whose correlation ids overlap. So each process becomes
// its own trace, named "report.sqlite:PID".

#include <cstdint>
#include <string>
#include <vector>

#include "import/files/sqlite_file.h"

namespace foretrace {

struct NsysProcess {
  std::int64_t global = 0;  ///< Its globalPid.
  std::int64_t pid = 0;
  std::string name;    ///< May be empty.
  std::string member;  ///< The part in "report.sqlite:PID".
  std::int32_t rank = 0;
};

/// The processes of a report that become traces, in the order of their ranks.
struct NsysProcesses {
  std::vector<NsysProcess> all;
  std::int64_t left_out = 0;   ///< Number of processes without device work, if others have some.
  std::string first_left_out;  ///< Process id of the first of them.
  bool ranks_recorded =
      false;  ///< Whether MPI recorded the ranks; otherwise devices and processes give their order.
  bool rows_name_process = true;  ///< Whether the process of each row is known.
};

NsysProcesses find_nsys_processes(const SqliteFile& file);

}  // namespace foretrace
