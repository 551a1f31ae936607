#pragma once

// What the picture of several ranks shows beside the records of one trace: whose each process and
// device is, and whom a rank waits for.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace foretrace {

struct RankView {
  /// A collective that waits, and that of the rank that enters last: into Trace::devices.
  struct Wait {
    std::uint32_t from = 0, to = 0;
  };
  std::map<std::int64_t, std::string> processes;  ///< Names by number.
  std::map<std::int32_t, std::string> devices;    ///< Likewise, by ordinal.
  std::vector<Wait> waits;
};

}  // namespace foretrace
