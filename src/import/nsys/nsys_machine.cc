// Reads the facts in a report about the machine, the session and the report itself.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>

#include "base/json_text.h"
#include "base/parse_number.h"
#include "import/nsys/nsys_readers.h"
#include "trace/nsys_words.h"
#include "trace/stream_flags.h"

namespace foretrace {

namespace {

/// The newest major version of the tables that this reader knows.
constexpr std::int64_t kKnownMajor = 3;
constexpr std::size_t kMaxMessages = 12;
constexpr std::size_t kLongestMessage = 200;
constexpr std::int64_t kSeverityWarning = 2;
constexpr std::int64_t kSeverityError = 3;

std::int32_t small(const SqliteRows& row, int column) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(row.integer(column), 0, 0x7fffffff));
}

std::int64_t number_in(std::string_view text, std::int64_t otherwise) {
  return parse_number<std::int64_t>(text).value_or(otherwise);
}

/// Reads the table of devices that versions before the middle of 2021 write.
void read_old_devices(NsysTables& tables) {
  SqliteRows rows(tables.file, "TARGET_INFO_CUDA_GPU",
                  {"deviceId", "name", "totalMemory", "numMultiprocessors",
                   "computeCapabilityMajor", "computeCapabilityMinor", "id", "globalMemorySize"});
  while (rows.next()) {
    Device device;
    device.ordinal = small(rows, rows.has(0) ? 0 : 6);
    device.name = tables.trace.names[tables.strings.intern(rows.text(1))];
    device.memory_bytes = std::max<std::int64_t>(0, rows.integer(rows.has(2) ? 2 : 7));
    device.multiprocessors = small(rows, 3);
    device.major = small(rows, 4);
    device.minor = small(rows, 5);
    tables.trace.properties.push_back(std::move(device));
  }
}

void read_devices(NsysTables& tables) {
  // CUDA's numbers in this process for each device of the machine.
  std::map<std::int64_t, std::vector<std::int64_t>> numbers;
  SqliteRows shown(tables.file, "TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"});
  while (shown.next()) {
    if (shown.has(0) && (!shown.has(2) || shown.integer(2) == tables.process.pid))
      numbers[shown.integer(0)].push_back(shown.integer(1));
  }
  SqliteRows rows(
      tables.file, "TARGET_INFO_GPU",
      {"id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor", "cuDevice"});
  while (rows.next()) {
    Device device;
    device.ordinal = small(rows, rows.has(6) ? 6 : 0);
    const auto shown_as = numbers.find(rows.integer(0));
    if (shown_as != numbers.end())
      device.ordinal = static_cast<std::int32_t>(shown_as->second.front() & 0x7fffffff);
    else if (!numbers.empty())
      continue;
    device.name = tables.trace.names[tables.strings.intern(rows.text(1))];
    device.memory_bytes = std::max<std::int64_t>(0, rows.integer(2));
    device.multiprocessors = small(rows, 3);
    device.major = small(rows, 4);
    device.minor = small(rows, 5);
    tables.trace.properties.push_back(std::move(device));
  }
  if (tables.trace.properties.empty()) read_old_devices(tables);
  std::stable_sort(tables.trace.properties.begin(), tables.trace.properties.end(),
                   [](const Device& a, const Device& b) { return a.ordinal < b.ordinal; });
}

std::int64_t read_session(NsysTables& tables) {
  SqliteRows rows(tables.file, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
  const std::int64_t session_ns = rows.next() ? rows.integer(0) : 0;
  if (!tables.process.name.empty())
    tables.trace.metadata["process"] = json_string(tables.process.name);
  if (tables.process.pid != 0) tables.trace.metadata["pid"] = std::to_string(tables.process.pid);
  return session_ns;
}

void read_export(NsysTables& tables) {
  constexpr std::int64_t kMaxRanks = 1 << 24;
  SqliteRows rows(tables.file, "META_DATA_EXPORT", {"name", "value"});
  while (rows.next()) {
    const std::string name(rows.text(0));
    const std::string_view value = rows.text(1);
    const std::int64_t number = number_in(value, -1);
    if (name == "EXPORT_PRODUCT_VERSION") {
      tables.trace.metadata["nsys_version"] = json_string(value);
    } else if (name == "EXPORT_SCHEMA_VERSION") {
      tables.trace.metadata["nsys_schema"] = json_string(value);
    } else if (name == "EXPORT_SCHEMA_VERSION_MAJOR" && number > kKnownMajor) {
      tables.trace.notes.add(
          Severity::warning,
          "the tables are newer than the known versions; anything that was renamed is "
          "missing from the trace",
          "version " + std::string(value));
    } else if (name == nsys_words::kRank && number >= 0 && number < kMaxRanks) {
      tables.trace.rank = static_cast<std::int32_t>(number);
    } else if (name == nsys_words::kWorldSize && number >= 1 && number <= kMaxRanks) {
      tables.trace.world_size = static_cast<std::int32_t>(number);
    } else if (name == nsys_words::kTick && number >= 1) {
      tables.trace.tick_ns = number;
    }
  }
}

/// Turns the profiler's messages about this process, or about all, into notes. Messages on CUDA and
/// NVTX report lost records, so each gets its own note; the rest concerns CPU samples, graphics and
/// so on.
void read_messages(NsysTables& tables) {
  SqliteRows rows(tables.file, "DIAGNOSTIC_EVENT", {"severity", "text", "globalPid"});
  std::set<std::string> seen;
  while (rows.next()) {
    const std::int64_t severity = rows.integer(0);
    if (severity != kSeverityWarning && severity != kSeverityError) continue;
    const std::int64_t of = rows.integer(2, 0);
    const bool of_all = !rows.has(2) || ((of >> 24) & 0xffffff) == 0;
    if (!of_all && of != tables.process.global) continue;
    std::string text(rows.text(1).substr(0, kLongestMessage));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
    text = tables.trace.names[tables.strings.intern(text)];
    const bool matters = text.find("CUDA") != text.npos || text.find("NVTX") != text.npos ||
                         text.find("CUPTI") != text.npos;
    if (!matters || (!seen.contains(text) && seen.size() >= kMaxMessages)) {
      tables.trace.notes.add(Severity::info, "other warnings of Nsight Systems while it recorded",
                             text);
    } else {
      seen.insert(text);
      tables.trace.notes.add(Severity::info, "Nsight Systems: " + text);
    }
  }
}

/// Notes the tables that have times but that no reader reads.
void note_other_tables(NsysTables& tables) {
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
  std::int64_t unread = 0;
  for (const std::string& table : tables.file.tables()) {
    if (std::find(std::begin(kRead), std::end(kRead), table) != std::end(kRead)) continue;
    SqliteRows rows(tables.file, table, {"start", "rawTimestamp"});
    if ((!rows.known(0) && !rows.known(1)) || !rows.next()) continue;
    ++unread;
    if (names.size() < kLongestMessage) names += (names.empty() ? "" : ", ") + table;
  }
  if (unread == 0) return;
  tables.trace.notes.add(Severity::info, "tables of events that a trace has no place for",
                         tables.trace.names[tables.strings.intern(names)], unread);
}

void note_processes(NsysTables& tables) {
  if (tables.processes.left_out > 0) {
    tables.trace.notes.add(Severity::info,
                           "processes without device work next to others with it, left out",
                           "process " + tables.processes.first_left_out, tables.processes.left_out);
  }
  if (!tables.processes.rows_name_process) {
    tables.trace.notes.add(
        Severity::warning,
        "the device records do not name their process, and there are several; calls "
        "and device work may be matched wrongly");
  }
  if (tables.processes.all.size() > 1 && !tables.processes.ranks_recorded) {
    tables.trace.notes.add(
        Severity::info, "ranks are numbered in the order of devices and processes in the report",
        fmt::format("process {} is rank {}", tables.process.member, tables.process.rank));
  }
}

}  // namespace

/// Streams are numbered within their context. If two contexts of a device use the same number,
/// their flags count only if they agree.
void read_nsys_stream_flags(NsysTables& tables) {
  const auto is_mine = [&](const SqliteRows& row, int column) {
    return tables.process.pid == 0 || !row.has(column) ||
           ((row.integer(column) ^ tables.process.pid) & 0xffffff) == 0;
  };
  using Number = std::pair<std::int64_t, std::int64_t>;
  std::map<std::int64_t, std::set<std::int64_t>> devices;  // By context.
  std::map<Number, StreamFlag> known;                      // By device and stream.
  const auto learn = [&](Number stream, StreamFlag flag) {
    const auto [entry, is_new] = known.emplace(stream, flag);
    if (!is_new && entry->second != flag) entry->second = StreamFlag::unknown;
  };
  SqliteRows contexts(tables.file, "TARGET_INFO_CUDA_CONTEXT_INFO",
                      {"contextId", "deviceId", "nullStreamId", "processId"});
  while (contexts.next()) {
    if (!is_mine(contexts, 3) || !contexts.has(0) || !contexts.has(2)) continue;
    devices[contexts.integer(0)].insert(contexts.integer(1));
    learn({contexts.integer(1), contexts.integer(2)}, StreamFlag::null);
  }
  SqliteRows streams(tables.file, "TARGET_INFO_CUDA_STREAM",
                     {"streamId", "contextId", "flag", "processId"});
  while (streams.next()) {
    if (!is_mine(streams, 3)) continue;
    for (const std::int64_t device : devices[streams.integer(1)])
      learn({device, streams.integer(0)}, stream_flag_of(streams.integer(2)));
  }
  std::vector<StreamFlag> flags;
  for (const Stream& stream : tables.trace.streams) {
    const auto found = known.find({stream.device, stream.id});
    flags.push_back(found == known.end() ? StreamFlag::unknown : found->second);
  }
  keep_stream_flags(tables.trace, flags);
}

std::int64_t read_nsys_machine(NsysTables& tables) {
  read_export(tables);
  const std::int64_t session_ns = read_session(tables);
  read_devices(tables);
  return session_ns;
}

void note_nsys_report(NsysTables& tables) {
  note_processes(tables);
  read_messages(tables);
  note_other_tables(tables);
}

}  // namespace foretrace
