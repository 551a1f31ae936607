#include "foretrace/free_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace foretrace {
namespace {

using Known = std::optional<std::int64_t>;

/// The number in a file that holds one; nothing for "max".
Known number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? Known(number) : std::nullopt;
}

/// Of "MemAvailable:   24000000 kB".
Known available_on_machine() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::int64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    file.ignore(64, '\n');
  }
  return std::nullopt;
}

/// The control group's folder, as "0::/user.slice/..." in /proc/self/cgroup names it.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + line.substr(3);
  }
  return {};
}

/// What the control group and those around it leave. Memory that only caches files is given back
/// when needed, so it counts as free.
Known left_by_control_groups() {
  constexpr std::string_view kRoot = "/sys/fs/cgroup";
  Known least;
  for (std::string group = control_group(); group.size() >= kRoot.size();
       group.resize(group.rfind('/'))) {
    const Known most = number_in(group + "/memory.max");
    const Known used = number_in(group + "/memory.current");
    if (!most || !used) continue;
    std::int64_t cached = 0;
    std::ifstream parts(group + "/memory.stat");
    std::string key;
    for (std::int64_t bytes = 0; parts >> key >> bytes;) {
      if (key == "inactive_file") cached = bytes;
    }
    const std::int64_t left = std::max<std::int64_t>(*most - *used + cached, 0);
    least = std::min(least.value_or(left), left);
  }
  return least;
}

Known left_of_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const Known pages = number_in("/proc/self/statm");
  const std::int64_t used = pages.value_or(0) * sysconf(_SC_PAGESIZE);
  return std::max<std::int64_t>(static_cast<std::int64_t>(limit.rlim_cur) - used, 0);
}

}  // namespace

std::optional<Bytes> free_memory() {
  Known least;
  for (const Known& left :
       {available_on_machine(), left_by_control_groups(), left_of_address_space()}) {
    if (left) least = std::min(least.value_or(*left), *left);
  }
  return least ? std::optional(Bytes{*least}) : std::nullopt;
}

}  // namespace foretrace
