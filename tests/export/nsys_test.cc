#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <sstream>

#include "export/nsys/nsys_report.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "import/files.h"
#include "import/recorded.h"
#include "support/corpus.h"
#include "trace/stream_flags.h"

namespace foretrace {
namespace {

/// The rows of a query, columns separated by '|'.
std::string query(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  std::string text;
  const auto add_row = [](void* to, int count, char** values, char** /*names*/) {
    std::string& all = *static_cast<std::string*>(to);
    for (int i = 0; i < count; ++i)
      all += (i == 0 ? "" : "|") + std::string(values[i] == nullptr ? "-" : values[i]);
    all += "\n";
    return 0;
  };
  char* error = nullptr;
  sqlite3_exec(database, sql.c_str(), add_row, &text, &error);
  EXPECT_EQ(error, nullptr) << error;
  sqlite3_free(error);
  sqlite3_close(database);
  return text;
}

std::int64_t first_time(const Trace& trace) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const HostRecord& record : trace.hosts) first = std::min(first, record.start_ns);
  for (const DeviceRecord& record : trace.devices) first = std::min(first, record.start_ns);
  for (const SyncRecord& record : trace.syncs) first = std::min(first, record.start_ns);
  for (const MemoryRecord& record : trace.memory) first = std::min(first, record.time_ns);
  return first;
}

/// Removes everything that the tables cannot store.
void keep_what_fits(Trace& trace) {
  const NsysThreads numbers(trace);
  for (std::size_t i = 0; i < trace.threads.size(); ++i) {
    trace.threads[i].process = numbers.pid();
    trace.threads[i].id = numbers.global_tid(i) & 0xffffff;
  }
  std::erase_if(trace.devices,
                [](const DeviceRecord& record) { return record.kind == DeviceKind::annotation; });
  // CUPTI's number for "no stream", which some profilers leave in their files.
  for (SyncRecord& record : trace.syncs) {
    if (record.stream != kNone && trace.streams[record.stream].id == 0xffffffff)
      record.stream = kNone;
  }
  trace.links.clear();
  trace.notes = {};
}

/// All records in alphabetical order, with times relative to the first of them.
std::vector<std::string> lines_of(Trace& trace) {
  const std::int64_t first = first_time(trace);
  for (HostRecord& record : trace.hosts) record.start_ns -= first;
  for (DeviceRecord& record : trace.devices) record.start_ns -= first;
  for (SyncRecord& record : trace.syncs) record.start_ns -= first;
  for (MemoryRecord& record : trace.memory) record.time_ns -= first;
  std::istringstream text(describe(trace));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  for (const MemoryRecord& record : trace.memory) {
    const Thread& thread = trace.threads.at(record.thread);
    lines.push_back("memory at " + std::to_string(record.time_ns) + " on " +
                    std::to_string(thread.id) + " " + std::string(to_string(record.action)));
  }
  for (const Device& device : trace.properties) {
    lines.push_back("device " + std::to_string(device.ordinal) + " " + device.name + " " +
                    std::to_string(device.memory_bytes) + " " +
                    std::to_string(device.multiprocessors) + " " + std::to_string(device.major) +
                    "." + std::to_string(device.minor));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// Exports, imports and compares. Returns the first difference, or the empty string.
std::string difference_after_export(Trace trace, const std::string& path) {
  std::filesystem::remove(path);
  export_trace(trace, path);
  Trace again = import_trace(path);
  again.notes = {};
  keep_what_fits(trace);
  if (trace.rank != again.rank || trace.world_size != again.world_size) return "the rank";
  if (trace.tick_ns != again.tick_ns) return "the tick";
  const std::int64_t origin = trace.origin_ns + first_time(trace);
  if (origin != again.origin_ns + first_time(again)) return "the origin";
  const std::vector<std::string> before = lines_of(trace);
  const std::vector<std::string> after = lines_of(again);
  const auto [a, b] = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  if (a == before.end() && b == after.end()) return {};
  return (a == before.end() ? "end" : *a) + "\nbecame\n" + (b == after.end() ? "end" : *b);
}

class NsysExporter : public testing::Test {
 protected:
  Folder folder_;
};

/// A small training step.
constexpr const char* kStep =
    R"json({"deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem":
80, "numSms": 4, "computeMajor": 9, "computeMinor": 0}], "distributedInfo": {"rank": 3,
"world_size": 8}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9, "ts": 0, "dur": 100},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm, seq = 1", "pid": 9, "tid": 9, "ts": 1, "dur": 20,
 "args": {"External id": 4, "Sequence number": 7, "Input Dims": [[2, 3]], "Input type": ["float"]}},
{"ph": "X", "cat": "cpu_op", "name": "forward", "pid": 9, "tid": 10, "ts": 1, "dur": 0},
{"ph": "X", "cat": "user_annotation", "name": "aten::not_an_op", "pid": 9, "tid": 10, "ts": 3, "dur": 0},
{"ph": "X", "cat": "python_function", "name": "train.py(3): step", "pid": 9, "tid": 9, "ts": 0, "dur": 90,
 "args": {"Python id": 5, "Python parent id": 4}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 5, "dur": 2,
 "args": {"correlation": 11, "External id": 4}},
{"ph": "X", "cat": "kernel", "name": "void ns::gemm<float, 2>(int)", "pid": 0, "tid": 7, "ts": 9, "dur": 30,
 "args": {"device": 0, "stream": 7, "correlation": 11, "grid": [4, 2, 1], "block": [128, 1, 1], "graph node id": 77}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 20, "ts": 9, "dur": 30,
 "args": {"device": 0, "stream": 20, "correlation": 12, "Collective name": "allreduce", "In msg nelems": 5,
 "Out msg nelems": 5, "Group size": 8, "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "pid": 0, "tid": 7, "ts": 50, "dur": 3,
 "args": {"device": 0, "stream": 7, "correlation": 13, "bytes": 4096}},
{"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 55, "dur": 3,
 "args": {"device": 0, "stream": 7, "correlation": 14, "bytes": 64}},
{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 7, "ts": 60, "dur": 1, "args":
 {"cuda_sync_kind": "Stream Wait Event", "stream": 7, "correlation": 15, "device": 0, "wait_on_stream": 20,
  "wait_on_cuda_event_record_corr_id": 12, "wait_on_cuda_event_id": 2}},
{"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "pid": 0, "tid": -1, "ts": 62, "dur": 1, "args":
 {"cuda_sync_kind": "Event Sync", "stream": -1, "correlation": 16, "device": 0, "wait_on_stream": -1,
  "wait_on_cuda_event_record_corr_id": -1, "wait_on_cuda_event_id": 2}},
{"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": -1, "ts": 64, "dur": 1, "args":
 {"cuda_sync_kind": "Context Sync", "stream": -1, "correlation": 17, "device": 0}},
{"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0, "ts": 70, "dur": 5},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 9, "tid": 10, "ts": 4, "args":
 {"Total Reserved": 100, "Total Allocated": 50, "Bytes": 50, "Addr": 4096, "Device Id": 0, "Device Type": 1}},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 9, "tid": 10, "ts": 6, "args":
 {"Bytes": -50, "Addr": 4096, "Device Id": -1, "Device Type": 0}},
{"ph": "M", "name": "thread_name", "pid": 9, "tid": 10, "args": {"name": "autograd"}}
]})json";

TEST_F(NsysExporter, WritesWhatTheImporterReads) {
  EXPECT_EQ(difference_after_export(read_text(kStep), folder_ / "x.sqlite"), "");
}

TEST_F(NsysExporter, SaysHowStreamsWereCreatedOnlyWhereItIsKnown) {
  Trace trace = read_text(kStep);
  export_trace(trace, folder_ / "unknown.sqlite");
  EXPECT_EQ(import_trace(folder_ / "unknown.sqlite").metadata.count("cuda_stream_flags"), 0U);
  ASSERT_EQ(trace.streams.size(), 2U);
  keep_stream_flags(trace, {StreamFlag::null, StreamFlag::non_blocking});
  export_trace(trace, folder_ / "known.sqlite");
  EXPECT_EQ(import_trace(folder_ / "known.sqlite").metadata.at("cuda_stream_flags"),
            "[[0,7,3],[0,20,2]]");
}

TEST_F(NsysExporter, LetsScriptsForNsysRun) {
  const std::string path = folder_ / "x.sqlite";
  export_trace(read_text(kStep), path);
  EXPECT_EQ(query(path,
                  "SELECT k.end - k.start, d.value, s.value, r.globalTid % 0x1000000, "
                  "k.gridX * k.gridY * k.gridZ FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                  "JOIN StringIds d ON d.id = k.demangledName "
                  "JOIN StringIds s ON s.id = k.shortName "
                  "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND "
                  "r.globalTid / 0x1000000 % 0x1000000 = k.globalPid / 0x1000000 % 0x1000000"),
            "30000|void ns::gemm<float, 2>(int)|gemm|9|8\n");
  EXPECT_EQ(query(path,
                  "SELECT label, sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY JOIN "
                  "ENUM_CUDA_MEMCPY_OPER ON id = copyKind GROUP BY 1"),
            "Device-to-Host|4096\n");
  EXPECT_EQ(query(path,
                  "SELECT text, end - start FROM NVTX_EVENTS WHERE eventType = 59 AND end > start "
                  "ORDER BY start, end DESC"),
            "ProfilerStep#1|100000\ntrain.py(3): step|90000\naten::mm, seq = 1|20000\n");
  EXPECT_EQ(query(path, "SELECT pid, globalPid / 0x1000000 % 0x1000000 FROM PROCESSES"), "9|9\n");
  EXPECT_EQ(query(path, "SELECT value FROM ThreadNames JOIN StringIds ON id = nameId"),
            "autograd\n");
  EXPECT_EQ(query(path, "SELECT utcTime FROM TARGET_INFO_SESSION_START_TIME"),
            "2023-11-14T22:13:20\n");
  EXPECT_EQ(query(path,
                  "SELECT label FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION JOIN "
                  "ENUM_CUPTI_SYNC_TYPE ON id = syncType ORDER BY start"),
            "Stream wait sync\nEvent sync\nContext sync\n");
  EXPECT_EQ(query(path, "SELECT name, smCount, computeMajor FROM TARGET_INFO_GPU"), "GPU|4|9\n");
  EXPECT_EQ(query(path, "PRAGMA integrity_check"), "ok\n");
}

TEST_F(NsysExporter, TellsRangesThatNestFromThoseThatMayCross) {
  Trace trace = read_text(kStep);
  trace.hosts[1].nests = false;
  for (const std::string form : {"x.sqlite", "x.json", "x.ftrace", "x.pftrace"}) {
    export_trace(trace, folder_ / form);
    const Trace again = import_trace(folder_ / form);
    for (const HostRecord& record : again.hosts)
      EXPECT_EQ(record.nests, again.names[record.name] != "aten::mm, seq = 1") << form;
  }
  EXPECT_EQ(query(folder_ / "x.sqlite", "SELECT text FROM NVTX_EVENTS WHERE eventType = 60"),
            "aten::mm, seq = 1\n");
}

TEST_F(NsysExporter, GivesThreadsNumbersThatFitAndDiffer) {
  Trace trace;
  trace.format = "kineto";
  for (const auto& [process, id] : {std::pair<std::int64_t, std::int64_t>{5, 7},
                                    {5, 140735340871680},
                                    {6, 7},
                                    {5, 0},
                                    {-3, -1000000},
                                    {5, 0xffffff}}) {
    const auto thread = static_cast<std::uint16_t>(trace.threads.size());
    trace.threads.push_back({.process = process, .id = id, .name = {}});
    HostRecord record;
    record.thread = thread;
    record.start_ns = thread;
    record.name = trace.names.intern("cudaFree");
    record.kind = HostKind::runtime;
    trace.hosts.push_back(record);
  }
  export_trace(trace, folder_ / "x.sqlite");
  const Trace again = import_trace(folder_ / "x.sqlite");
  ASSERT_EQ(again.threads.size(), 6U);
  std::set<std::int64_t> ids;
  for (const Thread& thread : again.threads) {
    EXPECT_EQ(thread.process, 5);
    ids.insert(thread.id);
  }
  EXPECT_EQ(ids.size(), 6U);
  EXPECT_EQ(again.threads[0].id, 7);
  EXPECT_EQ(again.threads[5].id, 0xffffff);
}

TEST_F(NsysExporter, LeavesNothingHalfWritten) {
  const std::string path = folder_.write("x.sqlite", "what was here before");
  Trace trace;
  EXPECT_THROW(export_trace(trace, path), Error);
  trace.has_times = false;
  EXPECT_THROW(export_trace(trace, path), Error);
  EXPECT_EQ(contents_of(path), "what was here before");
  EXPECT_THROW(export_trace(read_text(kStep), folder_ / "no/such/x.sqlite"), Error);
  export_trace(read_text(kStep), path);
  EXPECT_EQ(import_trace(path).rank, 3);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    files.push_back(entry.path().filename());
  EXPECT_EQ(files, std::vector<std::string>{"x.sqlite"});
}

TEST_F(NsysExporter, KeepsTheRecordsOfTheCorpus) {
  const char* corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << kNoCorpus;
  int compared = 0;
  for (const char* name :
       {"rn50-dl-v100/w0_runA.pt.trace.json.gz", "rn50-autograd-api/w0.pt.trace.json.gz",
        "tinylm-ladder/trace_06.json", "vit-int8/vitl_int8.json.gz", "nanogpt-8rank/rank0.json.gz",
        "megatron-tp2/kineto_1.pt.trace.json", "hta-ddp-v100-mem/df_index_resolver.json.gz",
        "hta-small/event_sync_multi_stream.json.gz", "hta-small/simple_add_cp.json.gz",
        "dev-pair-h100-mi300/qwen05b_h100.json.gz", "mini-train-mem/run1_a.json",
        "nsys-h200-small/report3.sqlite", "nsys-27b-eager-graph/result_2_7B_clean.sqlite"}) {
    std::string path = std::string(corpus) + "/" + name;
    if (!std::filesystem::exists(path)) path += ".gz";
    if (!std::filesystem::exists(path)) continue;
    EXPECT_EQ(difference_after_export(import_trace(path), folder_ / "x.sqlite"), "") << name;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace foretrace
