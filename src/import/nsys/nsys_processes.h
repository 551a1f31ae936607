#pragma once

// One report may contain several processes, whose correlation ids overlap. Each is a trace of its
// own, named "report.sqlite:PID".

#include <cstdint>
#include <string>
#include <vector>

#include "import/files/sqlite_file.h"

namespace foretrace {

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

}  // namespace foretrace
