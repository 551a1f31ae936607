#include "base/free_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace foretrace {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// Sums the lines with these names in a file such as /proc/meminfo, in its own unit; kUnlimited if
/// one is missing.
std::uint64_t sum_of(const std::string& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  std::uint64_t sum = 0;
  std::size_t found = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t end = line.find_first_of(": ");
    const std::string_view name = std::string_view(line).substr(0, end);
    if (end == std::string::npos || std::find(names.begin(), names.end(), name) == names.end())
      continue;
    sum += std::strtoull(line.c_str() + end + 1, nullptr, 10);
    ++found;
  }
  return found == names.size() ? sum : kUnlimited;
}

/// Reads a file of one number; kUnlimited if it has none, such as "max".
std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = kUnlimited;
  return file >> number ? number : kUnlimited;
}

/// Names of files and folders in one version of control groups.
struct CgroupFiles {
  std::string_view line;  ///< Text in front of the group's path in /proc/self/cgroup.
  std::string_view folder;
  const char *most, *used, *files;
};
constexpr CgroupFiles kCgroupVersions[] = {
    {"0::", "/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"},
    {":memory:", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "total_inactive_file"}};

/// Memory left to a control group. Cached pages of files count as free.
std::uint64_t memory_left_in(const std::string& folder, const CgroupFiles& version) {
  const std::uint64_t most = number_in(folder + version.most);
  const std::uint64_t used = number_in(folder + version.used);
  if (most == kUnlimited || used == kUnlimited) return kUnlimited;
  const std::uint64_t files = sum_of(folder + "/memory.stat", {version.files});
  const std::uint64_t needed = used - std::min(used, files == kUnlimited ? 0 : files);
  return most - std::min(most, needed);
}

/// The least memory left to any of the nested groups of this process.
std::uint64_t memory_left_in_cgroups(const CgroupFiles& version) {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  std::size_t at = std::string::npos;
  while (at == std::string::npos && std::getline(file, line)) at = line.find(version.line);
  if (at == std::string::npos) return kUnlimited;
  std::uint64_t left = kUnlimited;
  for (std::filesystem::path group = line.substr(at + version.line.size());;
       group = group.parent_path()) {
    left = std::min(left, memory_left_in(std::string(version.folder) + group.string(), version));
    if (group == group.parent_path()) return left;
  }
}

std::uint64_t memory_left_on_machine() {
  const std::uint64_t kilobytes = sum_of("/proc/meminfo", {"MemAvailable", "SwapFree"});
  return kilobytes == kUnlimited ? kUnlimited : kilobytes * 1024;
}

/// Memory left by a limit of the process. /proc/self/statm counts pages; `place` selects all
/// addresses (0) or data (5).
std::uint64_t memory_left_of_limit(int resource, int place) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return kUnlimited;
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  for (int i = 0; i <= place; ++i) file >> pages;
  const std::uint64_t used = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
}

}  // namespace

std::optional<Bytes> free_memory() {
  constexpr int kAllPages = 0, kDataPages = 5;
  const std::uint64_t left = std::min(
      {memory_left_on_machine(), memory_left_in_cgroups(kCgroupVersions[0]),
       memory_left_in_cgroups(kCgroupVersions[1]), memory_left_of_limit(RLIMIT_AS, kAllPages),
       memory_left_of_limit(RLIMIT_DATA, kDataPages)});
  if (left == kUnlimited) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(left)};
}

}  // namespace foretrace
