// Reads what a report contains about the machine, the session and itself.

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/json_string.h"
#include "import/nsys/nsys_file.h"
#include "trace/nsys_words.h"
#include "trace/stream_flags.h"

namespace foretrace {

namespace {

/// The newest version of the tables that this was written for.
constexpr std::int64_t kKnownMajor = 3;
constexpr std::size_t kMostMessages = 12;
constexpr std::size_t kLongestMessage = 200;
constexpr std::int64_t kSeverityWarning = 2;
constexpr std::int64_t kSeverityError = 3;

std::int32_t small(const SqliteRows& row, int column) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(row.integer(column), 0, 0x7fffffff));
}

std::int64_t number_in(std::string_view text, std::int64_t otherwise) {
  std::int64_t value = otherwise;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

}  // namespace

void NsysReport::read_devices() {
  // How CUDA numbers the devices of the machine in this process.
  std::map<std::int64_t, std::vector<std::int64_t>> numbers;
  SqliteRows shown(file_, "TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"});
  while (shown.next()) {
    if (shown.has(0) && (!shown.has(2) || shown.integer(2) == process_.pid))
      numbers[shown.integer(0)].push_back(shown.integer(1));
  }
  SqliteRows rows(
      file_, "TARGET_INFO_GPU",
      {"id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor", "cuDevice"});
  while (rows.next()) {
    Device device;
    device.ordinal = small(rows, rows.has(6) ? 6 : 0);
    const auto shown_as = numbers.find(rows.integer(0));
    if (shown_as != numbers.end())
      device.ordinal = static_cast<std::int32_t>(shown_as->second.front() & 0x7fffffff);
    else if (!numbers.empty())
      continue;
    device.name = trace_.names[strings_.intern(rows.text(1))];
    device.memory_bytes = std::max<std::int64_t>(0, rows.integer(2));
    device.multiprocessors = small(rows, 3);
    device.major = small(rows, 4);
    device.minor = small(rows, 5);
    trace_.properties.push_back(std::move(device));
  }
  if (trace_.properties.empty()) read_old_devices();
  std::stable_sort(trace_.properties.begin(), trace_.properties.end(),
                   [](const Device& a, const Device& b) { return a.ordinal < b.ordinal; });
}

/// Versions before the middle of 2021 have another table.
void NsysReport::read_old_devices() {
  SqliteRows rows(file_, "TARGET_INFO_CUDA_GPU",
                  {"deviceId", "name", "totalMemory", "numMultiprocessors",
                   "computeCapabilityMajor", "computeCapabilityMinor", "id", "globalMemorySize"});
  while (rows.next()) {
    Device device;
    device.ordinal = small(rows, rows.has(0) ? 0 : 6);
    device.name = trace_.names[strings_.intern(rows.text(1))];
    device.memory_bytes = std::max<std::int64_t>(0, rows.integer(rows.has(2) ? 2 : 7));
    device.multiprocessors = small(rows, 3);
    device.major = small(rows, 4);
    device.minor = small(rows, 5);
    trace_.properties.push_back(std::move(device));
  }
}

/// Streams are numbered within their context. If two contexts of a device use the same number,
/// their flags count only if they agree.
void NsysReport::read_stream_flags() {
  const auto is_mine = [&](const SqliteRows& row, int column) {
    return process_.pid == 0 || !row.has(column) ||
           ((row.integer(column) ^ process_.pid) & 0xffffff) == 0;
  };
  using Number = std::pair<std::int64_t, std::int64_t>;
  std::map<std::int64_t, std::set<std::int64_t>> devices;  // By context.
  std::map<Number, StreamFlag> known;                      // By device and stream.
  const auto learn = [&](Number stream, StreamFlag flag) {
    const auto [entry, is_new] = known.emplace(stream, flag);
    if (!is_new && entry->second != flag) entry->second = StreamFlag::unknown;
  };
  SqliteRows contexts(file_, "TARGET_INFO_CUDA_CONTEXT_INFO",
                      {"contextId", "deviceId", "nullStreamId", "processId"});
  while (contexts.next()) {
    if (!is_mine(contexts, 3) || !contexts.has(0) || !contexts.has(2)) continue;
    devices[contexts.integer(0)].insert(contexts.integer(1));
    learn({contexts.integer(1), contexts.integer(2)}, StreamFlag::null);
  }
  SqliteRows streams(file_, "TARGET_INFO_CUDA_STREAM",
                     {"streamId", "contextId", "flag", "processId"});
  while (streams.next()) {
    if (!is_mine(streams, 3)) continue;
    for (const std::int64_t device : devices[streams.integer(1)])
      learn({device, streams.integer(0)}, stream_flag_of(streams.integer(2)));
  }
  std::vector<StreamFlag> flags;
  for (const Stream& stream : trace_.streams) {
    const auto found = known.find({stream.device, stream.id});
    flags.push_back(found == known.end() ? StreamFlag::unknown : found->second);
  }
  keep_stream_flags(trace_, flags);
}

void NsysReport::read_session() {
  SqliteRows rows(file_, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
  if (rows.next()) session_ns_ = rows.integer(0);
  if (!process_.name.empty()) trace_.metadata["process"] = json_string(process_.name);
  if (process_.pid != 0) trace_.metadata["pid"] = std::to_string(process_.pid);
}

void NsysReport::read_export() {
  constexpr std::int64_t kMostRanks = 1 << 24;
  SqliteRows rows(file_, "META_DATA_EXPORT", {"name", "value"});
  while (rows.next()) {
    const std::string name(rows.text(0));
    const std::string_view value = rows.text(1);
    const std::int64_t number = number_in(value, -1);
    if (name == "EXPORT_PRODUCT_VERSION") {
      trace_.metadata["nsys_version"] = json_string(value);
    } else if (name == "EXPORT_SCHEMA_VERSION") {
      trace_.metadata["nsys_schema"] = json_string(value);
    } else if (name == "EXPORT_SCHEMA_VERSION_MAJOR" && number > kKnownMajor) {
      trace_.notes.add(Severity::warning,
                       "the tables are newer than the known versions; anything that was renamed is "
                       "missing from the trace",
                       "version " + std::string(value));
    } else if (name == nsys_words::kRank && number >= 0 && number < kMostRanks) {
      trace_.rank = static_cast<std::int32_t>(number);
    } else if (name == nsys_words::kWorldSize && number >= 1 && number <= kMostRanks) {
      trace_.world_size = static_cast<std::int32_t>(number);
    } else if (name == nsys_words::kTick && number >= 1) {
      trace_.tick_ns = number;
    }
  }
}

/// Messages of the profiler while it recorded, about this process or all. Those on CUDA and NVTX
/// report lost records; the rest is about samples of the CPU, graphics and so on.
void NsysReport::read_messages() {
  SqliteRows rows(file_, "DIAGNOSTIC_EVENT", {"severity", "text", "globalPid"});
  std::set<std::string> seen;
  while (rows.next()) {
    const std::int64_t severity = rows.integer(0);
    if (severity != kSeverityWarning && severity != kSeverityError) continue;
    const std::int64_t of = rows.integer(2, 0);
    const bool of_all = !rows.has(2) || ((of >> 24) & 0xffffff) == 0;
    if (!of_all && of != process_.global) continue;
    std::string text(rows.text(1).substr(0, kLongestMessage));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
    text = trace_.names[strings_.intern(text)];
    const bool matters = text.find("CUDA") != text.npos || text.find("NVTX") != text.npos ||
                         text.find("CUPTI") != text.npos;
    if (!matters || (!seen.contains(text) && seen.size() >= kMostMessages)) {
      trace_.notes.add(Severity::info, "other warnings of Nsight Systems while it recorded", text);
    } else {
      seen.insert(text);
      trace_.notes.add(Severity::info, "Nsight Systems: " + text);
    }
  }
}

/// Tables with times that nothing here reads.
void NsysReport::note_other_tables() {
  constexpr std::string_view kRead[] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                                        "CUPTI_ACTIVITY_KIND_MEMCPY",
                                        "CUPTI_ACTIVITY_KIND_MEMSET",
                                        "CUPTI_ACTIVITY_KIND_RUNTIME",
                                        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                                        "CUPTI_ACTIVITY_KIND_OVERHEAD",
                                        "PROFILER_OVERHEAD",
                                        "CUDNN_EVENTS",
                                        "CUBLAS_EVENTS",
                                        "NVTX_EVENTS",
                                        "CUDA_GPU_MEMORY_USAGE_EVENTS",
                                        "DIAGNOSTIC_EVENT"};
  std::string names;
  std::int64_t tables = 0;
  for (const std::string& table : file_.tables()) {
    if (std::find(std::begin(kRead), std::end(kRead), table) != std::end(kRead)) continue;
    SqliteRows rows(file_, table, {"start", "rawTimestamp"});
    if ((!rows.known(0) && !rows.known(1)) || !rows.next()) continue;
    ++tables;
    if (names.size() < kLongestMessage) names += (names.empty() ? "" : ", ") + table;
  }
  if (tables == 0) return;
  trace_.notes.add(Severity::info, "tables of events that a trace has no place for",
                   trace_.names[strings_.intern(names)], tables);
}

void NsysReport::note_processes() {
  if (processes_.left_out > 0) {
    trace_.notes.add(Severity::info,
                     "processes without device work next to others with it, left out",
                     "process " + processes_.first_left_out, processes_.left_out);
  }
  if (!processes_.told) {
    trace_.notes.add(Severity::warning,
                     "the device records do not name their process, and there are several; calls "
                     "and device work may be matched wrongly");
  }
  if (processes_.all.size() > 1 && !processes_.ranks_recorded) {
    trace_.notes.add(Severity::info,
                     "ranks are numbered in the order of devices and processes in the report",
                     "process " + process_.member + " is rank " + std::to_string(process_.rank));
  }
}

}  // namespace foretrace
