// Writes facts about the machine, the session and the report, and the tables of enumerations, which
// scripts join to translate numbers into names.

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "export/nsys/nsys_report.h"
#include "foretrace/version.h"
#include "trace/nsys_words.h"
#include "trace/stream_flags.h"

namespace foretrace {

namespace {

constexpr std::int64_t kMachineId = std::int64_t{1} << 48;

struct EnumRow {
  std::int64_t id;
  std::string_view name, label;
};

constexpr EnumRow kCopies[] = {{0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
                               {1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
                               {2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
                               {3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
                               {4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
                               {5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
                               {6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
                               {7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
                               {8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
                               {9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
                               {10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"},
                               {11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"},
                               {12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"},
                               {13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"}};

constexpr EnumRow kMemories[] = {{0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
                                 {1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
                                 {2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
                                 {3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
                                 {4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
                                 {5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
                                 {6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
                                 {7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"}};

constexpr EnumRow kSyncs[] = {
    {0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
    {1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"},
    {2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"},
    {3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"},
    {4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"}};

constexpr EnumRow kMemoryEvents[] = {{0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation"},
                                     {1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation"}};

constexpr EnumRow kLaunches[] = {
    {0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"},
    {1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"},
    {2, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE", "Coop Single Device"},
    {3, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE", "Coop Multi Device"}};

constexpr EnumRow kStreams[] = {
    {0, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN", "Unknown stream type"},
    {1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default stream"},
    {2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking stream"},
    {3, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null stream"}};

constexpr EnumRow kClasses[] = {{0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"},
                                {1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"}};

constexpr EnumRow kEvents[] = {{33, "NvtxCategory", "NvtxCategory"},
                               {34, "NvtxMark", "NvtxMark"},
                               {59, "NvtxPushPopRange", "NvtxPushPopRange"},
                               {60, "NvtxStartEndRange", "NvtxStartEndRange"},
                               {75, "NvtxDomainCreate", "NvtxDomainCreate"}};

template <std::size_t size>
void write_enum(SqliteWriter& writer, std::string_view table, const EnumRow (&all)[size]) {
  SqliteInsert rows(writer, table, "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT");
  for (const EnumRow& row : all) rows.add({row.id, row.name, row.label});
}

/// The time in UTC: "2024-12-11T01:03:19".
std::string utc_text(std::int64_t epoch_ns) {
  const auto seconds = static_cast<std::time_t>(epoch_ns / 1'000'000'000);
  std::tm parts{};
  std::array<char, 40> text{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return {};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return text.data();
}

std::optional<std::int64_t> if_known(std::int64_t number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

void NsysExport::write_process() {
  SqliteInsert processes(writer_, "PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT");
  const auto told = trace_.metadata.find("process");
  const nlohmann::json name = told == trace_.metadata.end()
                                  ? nlohmann::json()
                                  : try_parse_json<nlohmann::json>(told->second);
  const std::string known = name.is_string() ? name.get<std::string>() : std::string();
  processes.add({threads_.global_pid(), threads_.pid(),
                 known.empty() ? Cell(std::nullopt) : Cell(std::string_view(known))});
  SqliteInsert threads(writer_, "ThreadNames",
                       "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER");
  for (std::size_t i = 0; i < trace_.threads.size(); ++i) {
    if (trace_.threads[i].name.empty()) continue;
    threads.add({texts_.id(std::string_view(trace_.threads[i].name)), std::nullopt,
                 threads_.global_tid(i)});
  }
}

void NsysExport::write_machine() {
  SqliteInsert rows(
      writer_, "TARGET_INFO_GPU",
      "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, "
      "isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, "
      "clockRate INTEGER, smCount INTEGER, pwGpuId INTEGER, uuid TEXT, luid INTEGER, "
      "chipName TEXT, cuDevice INTEGER, threadsPerWarp INTEGER, computeMajor INTEGER, "
      "computeMinor INTEGER, smMajor INTEGER, smMinor INTEGER");
  for (const Device& device : trace_.properties) {
    const auto none = std::nullopt;
    const auto major = if_known(device.major);
    const auto minor = major ? std::optional(std::int64_t{device.minor}) : none;
    rows.add({kMachineId,
              std::int64_t{device.ordinal},
              std::string_view(device.name),
              none,
              none,
              none,
              if_known(device.memory_bytes),
              none,
              none,
              if_known(device.multiprocessors),
              none,
              none,
              none,
              none,
              std::int64_t{device.ordinal},
              none,
              major,
              minor,
              major,
              minor});
  }
}

void NsysExport::write_streams() {
  SqliteInsert contexts(writer_, "TARGET_INFO_CUDA_CONTEXT_INFO",
                        "nullStreamId INTEGER NOT NULL, hwId INTEGER NOT NULL, "
                        "vmId INTEGER NOT NULL, processId INTEGER NOT NULL, "
                        "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
                        "parentContextId INTEGER, isGreenContext INTEGER");
  SqliteInsert streams(writer_, "TARGET_INFO_CUDA_STREAM",
                       "streamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, "
                       "processId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
                       "priority INTEGER NOT NULL, flag INTEGER NOT NULL");
  constexpr std::int64_t kDefaultStream = 7;
  const std::int64_t zero = 0;
  const std::int64_t one = 1;
  const std::vector<StreamFlag> flags = stream_flags(trace_);
  std::map<std::int64_t, std::int64_t> null_streams;  // By device.
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const Stream& stream = trace_.streams[i];
    null_streams.emplace(stream.device, kDefaultStream);
    if (flags[i] == StreamFlag::null) null_streams[stream.device] = stream.id;
  }
  for (const auto& [device, null_stream] : null_streams)
    contexts.add({null_stream, zero, one, threads_.pid(), device, one, zero, zero});
  for (std::size_t i = 0; i < flags.size(); ++i) {
    streams.add({trace_.streams[i].id, zero, one, threads_.pid(), one, zero,
                 static_cast<std::int64_t>(flags[i])});
  }
}

void NsysExport::write_session() {
  const std::string time = utc_text(trace_.origin_ns);
  SqliteInsert session(writer_, "TARGET_INFO_SESSION_START_TIME",
                       "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT");
  session.add({trace_.origin_ns, std::string_view(time), std::string_view(time)});
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = 0;
  const auto widen = [&](std::int64_t start, std::int64_t duration) {
    first = std::min(first, start);
    last = std::max(last, start + duration);
  };
  for (const HostRecord& record : trace_.hosts) widen(record.start_ns, record.duration_ns);
  for (const DeviceRecord& record : trace_.devices) widen(record.start_ns, record.duration_ns);
  first = std::min(first, last);
  SqliteInsert analysis(writer_, "ANALYSIS_DETAILS",
                        "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, "
                        "startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL");
  analysis.add({kMachineId, last - first, first, last});
  SqliteInsert about(writer_, "META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT");
  const std::pair<std::string_view, std::string> entries[] = {
      {"EXPORT_PRODUCT_NAME", "Foretrace"},
      {"EXPORT_PRODUCT_VERSION", std::string(kVersion)},
      {"EXPORT_SCHEMA_VERSION", "3.16.1"},
      {"EXPORT_SCHEMA_VERSION_MAJOR", "3"},
      {"EXPORT_SCHEMA_VERSION_MINOR", "16"},
      {"EXPORT_SCHEMA_VERSION_MICRO", "1"},
      {"EXPORT_PARAM_LAZY", "true"},
      {nsys_words::kRank, std::to_string(trace_.rank)},
      {nsys_words::kWorldSize, std::to_string(trace_.world_size)},
      {nsys_words::kTick, std::to_string(trace_.tick_ns)},
  };
  for (const auto& [name, value] : entries) about.add({name, std::string_view(value)});
}

void NsysExport::write_enums() {
  write_enum(writer_, "ENUM_CUDA_MEMCPY_OPER", kCopies);
  write_enum(writer_, "ENUM_CUDA_MEM_KIND", kMemories);
  write_enum(writer_, "ENUM_CUPTI_SYNC_TYPE", kSyncs);
  write_enum(writer_, "ENUM_CUDA_DEV_MEM_EVENT_OPER", kMemoryEvents);
  write_enum(writer_, "ENUM_CUDA_KERNEL_LAUNCH_TYPE", kLaunches);
  write_enum(writer_, "ENUM_CUPTI_STREAM_TYPE", kStreams);
  write_enum(writer_, "ENUM_NSYS_EVENT_CLASS", kClasses);
  write_enum(writer_, "ENUM_NSYS_EVENT_TYPE", kEvents);
}

}  // namespace foretrace
