// Finds the processes in a report and the rank of each.

#include "import/nsys/nsys_processes.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <set>

#include "foretrace/error.h"

namespace foretrace {

namespace {

constexpr std::int64_t kThreadBits = 0xffffff;
constexpr std::int64_t kNoDevice = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxProcesses = 4096;

std::int64_t process_part(std::int64_t global) { return global & ~kThreadBits; }
std::int64_t pid_part(std::int64_t global) { return (global >> 24) & kThreadBits; }

constexpr std::string_view kDeviceTables[] = {
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"};
constexpr std::string_view kHostTables[] = {"CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"};

/// The lowest device that each process uses, by the global id of the process.
using Devices = std::map<std::int64_t, std::int64_t>;

struct ProcessScan {
  Devices with_work, on_host;
  bool has_unnamed_rows = false;  ///< Whether device rows do not name their process.
  bool has_rows = false;
};

ProcessScan scan_processes(const SqliteFile& file) {
  ProcessScan scan;
  for (const std::string_view table : kDeviceTables) {
    SqliteRows rows(file, table, {"globalPid", "deviceId"});
    while (rows.next()) {
      scan.has_rows = true;
      if (!rows.has(0)) {
        scan.has_unnamed_rows = true;
        continue;
      }
      std::int64_t& least =
          scan.with_work.try_emplace(process_part(rows.integer(0)), kNoDevice).first->second;
      least = std::min(least, rows.integer(1, kNoDevice));
    }
  }
  for (const std::string_view table : kHostTables) {
    SqliteRows rows(file, table, {"globalTid"});
    while (rows.next()) {
      scan.has_rows = true;
      if (rows.has(0)) scan.on_host.try_emplace(process_part(rows.integer(0)), kNoDevice);
    }
  }
  return scan;
}

/// Replaces the numbers of devices by the machine's. CUDA numbers the devices that a process can
/// see from 0, so the same number may mean different devices.
void use_machine_order(const SqliteFile& file, Devices& devices) {
  SqliteRows rows(file, "TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"});
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> gpus;
  while (rows.next()) {
    if (rows.has(0)) gpus.emplace(std::pair(rows.integer(2), rows.integer(1)), rows.integer(0));
  }
  for (auto& [global, device] : devices) {
    const auto gpu = gpus.find({pid_part(global), device});
    if (gpu != gpus.end()) device = gpu->second;
  }
}

void name_processes(const SqliteFile& file, std::vector<NsysProcess>& processes) {
  SqliteRows rows(file, "PROCESSES", {"globalPid", "name"});
  while (rows.next()) {
    for (NsysProcess& process : processes) {
      if (process.global == rows.integer(0)) process.name = rows.text(1);
    }
  }
  std::map<std::int64_t, int> pids;
  for (const NsysProcess& process : processes) ++pids[process.pid];
  for (NsysProcess& process : processes) {
    process.member = std::to_string(pids[process.pid] > 1 ? process.global : process.pid);
  }
}

/// Sets the ranks that MPI recorded and sorts the processes by them. Returns false, and changes
/// nothing, unless every process has a different rank.
bool take_mpi_ranks(const SqliteFile& file, std::vector<NsysProcess>& processes) {
  constexpr std::int64_t kMaxRanks = 1 << 24;
  std::map<std::int64_t, std::int64_t> ranks;
  SqliteRows rows(file, "MPI_RANKS", {"globalTid", "rank"});
  while (rows.next()) ranks.emplace(process_part(rows.integer(0)), rows.integer(1, -1));
  std::set<std::int64_t> different;
  for (const NsysProcess& process : processes) {
    const auto rank = ranks.find(process.global);
    if (rank == ranks.end() || rank->second < 0 || rank->second >= kMaxRanks) return false;
    different.insert(rank->second);
  }
  if (different.size() != processes.size()) return false;
  for (NsysProcess& process : processes)
    process.rank = static_cast<std::int32_t>(ranks[process.global]);
  std::stable_sort(processes.begin(), processes.end(),
                   [](const NsysProcess& a, const NsysProcess& b) { return a.rank < b.rank; });
  return true;
}

std::string tables_of(const SqliteFile& file) {
  std::string list;
  for (const std::string& table : file.tables()) {
    if (table.substr(0, 5) == "ENUM_" || table.substr(0, 12) == "TARGET_INFO_") continue;
    if (list.size() > 200) return list + ", ...";
    list += (list.empty() ? "" : ", ") + table;
  }
  return list.empty() ? "none" : list;
}

std::vector<NsysProcess> in_order(const Devices& devices) {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  for (const auto& [global, device] : devices) order.emplace_back(device, global);
  std::sort(order.begin(), order.end());
  std::vector<NsysProcess> processes;
  for (const auto& [device, global] : order) {
    processes.push_back({.global = global,
                         .pid = pid_part(global),
                         .name = {},
                         .member = {},
                         .rank = static_cast<std::int32_t>(processes.size())});
  }
  return processes;
}

}  // namespace

NsysProcesses find_nsys_processes(const SqliteFile& file) {
  ProcessScan scan = scan_processes(file);
  if (!scan.has_rows) {
    throw TraceError(
        "must have CUDA or NVTX records, but has none; apart from tables of names, it has " +
        tables_of(file));
  }
  NsysProcesses processes;
  Devices chosen = scan.with_work;
  if (chosen.empty()) {
    // Rows of old versions do not name their process. It is known if only one process made calls.
    processes.rows_name_process = !(scan.has_unnamed_rows && scan.on_host.size() > 1);
    if (processes.rows_name_process) chosen = scan.on_host;
    if (chosen.empty()) chosen.emplace(0, kNoDevice);
  } else {
    for (const auto& [global, device] : scan.on_host) {
      if (chosen.count(global) > 0) continue;
      if (processes.left_out++ == 0) processes.first_left_out = std::to_string(pid_part(global));
    }
  }
  if (chosen.size() > kMaxProcesses) {
    throw TraceError(fmt::format("must contain at most {} processes, but contains {}",
                                 kMaxProcesses, chosen.size()));
  }
  use_machine_order(file, chosen);
  processes.all = in_order(chosen);
  name_processes(file, processes.all);
  processes.ranks_recorded = take_mpi_ranks(file, processes.all);
  return processes;
}

}  // namespace foretrace
