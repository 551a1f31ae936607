#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/database.h"
#include "import/files.h"
#include "import/recorded.h"
#include "trace/stream_flags.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMachine = std::int64_t{1} << 48;

/// A global id of a process (thread 0) or of one of its threads.
std::string id_of(std::int64_t pid, std::int64_t thread = 0) {
  return std::to_string(kMachine | pid << 24 | thread);
}

/// Texts that the rows below refer to by number.
constexpr const char* kTexts = R"(
INSERT INTO StringIds VALUES (1, 'gemm<float>(int)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000'),
  (4, 'cudaMemcpyAsync_ptsz_v7000'), (5, 'cuLaunchKernel'), (6, 'python'), (7, 'forward'),
  (8, 'cudaStreamWaitEvent_v3020'), (9, 'cudaEventRecord_v3020'), (10, 'cudaDeviceSynchronize_v3020'),
  (11, 'cudaEventSynchronize_v3020'), (12, 'cudaGraphLaunch_v10000'), (13, 'cuCtxCreate_v2');
)";

std::string kernel(int start, int end, std::int64_t pid, int correlation, int device = 0,
                   int stream = 7, const std::string& graph_node = "NULL") {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + ", " +
         std::to_string(end) + ", " + std::to_string(device) + ", 1, NULL, " +
         std::to_string(stream) + ", " + std::to_string(correlation) + ", " + id_of(pid) +
         ", 1, 2, NULL, 4, 2, 1, 128, 1, 1, " + graph_node + ");";
}

std::string call_row(int start, int end, std::int64_t pid, int correlation, int name = 3,
                     int event_class = 0) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(start) + ", " +
         std::to_string(end) + ", " + std::to_string(event_class) + ", " + id_of(pid, 11) + ", " +
         std::to_string(correlation) + ", " + std::to_string(name) + ", 0, NULL);";
}

std::string nvtx(const std::string& values) {
  return "INSERT INTO NVTX_EVENTS (start, end, eventType, text, textId, domainId, globalTid) "
         "VALUES (" +
         values + ", " + id_of(100, 11) + ");";
}

class Nsys : public testing::Test {
 protected:
  std::string write(const std::string& sql, const std::string& name = "report.sqlite") const {
    const std::string path = folder_ / name;
    run_sql(path, sql);
    return path;
  }
  /// The trace read from a report with the usual tables and these rows.
  std::string read(const std::string& rows) const {
    return describe(import_trace(write(std::string(kNsysTables) + kTexts + rows)));
  }

  Folder folder_;
};

TEST_F(Nsys, ReadsCallsAndDeviceWork) {
  EXPECT_EQ(read(call_row(1000, 1010, 100, 5) + call_row(1020, 1030, 100, 6, 4) +
                 call_row(1040, 1050, 100, 7, 5, 1) + call_row(1060, 1070, 100, 0, 13, 1) +
                 kernel(2000, 2500, 100, 5) + kernel(2500, 2600, 100, 7, 0, 8, "4294967297") +
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2600, 2700, 0, 1, 7, 6, " +
                 id_of(100) + ", 4096, 1, 1, 2, NULL, NULL, NULL);" +
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2700, 2800, 0, 1, 7, 6, " +
                 id_of(100) + ", 64, 2, 2, 0, NULL, NULL, NULL);" +
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2800, 2900, 0, 1, 7, 6, " +
                 id_of(100) + ", 32, 8, 2, 2, 0, 1, NULL);" +
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (2900, 2910, 0, 1, 7, 6, " +
                 id_of(100) + ", 0, 16, NULL, 2);"),
            "runtime \"cudaLaunchKernel\" 100/11 0+10 correlation=5\n"
            "runtime \"cudaMemcpyAsync\" 100/11 20+10 correlation=6\n"
            "driver \"cuLaunchKernel\" 100/11 40+10 correlation=7\n"
            "driver \"cuCtxCreate_v2\" 100/11 60+10\n"
            "kernel \"gemm<float>(int)\" 0/7 1000+500 correlation=5 grid=8 block=128\n"
            "kernel \"gemm<float>(int)\" 0/8 1500+100 correlation=7 graph_node=4294967297 grid=8 "
            "block=128\n"
            "copy \"Memcpy HtoD (Pinned -> Device)\" 0/7 1600+100 in pinned bytes=4096 "
            "correlation=6\n"
            "copy \"Memcpy DtoH (Device -> Pageable)\" 0/7 1700+100 out bytes=64 correlation=6\n"
            "copy \"Memcpy DtoD (Device -> Device)\" 0/7 1800+100 peer bytes=32 correlation=6\n"
            "fill \"Memset (Device)\" 0/7 1900+10 bytes=16 correlation=6\n");
}

TEST_F(Nsys, NamesRangesByTheirTextOrItsNumberWithTheDomainInFront) {
  EXPECT_EQ(
      read(nvtx("0, 100, 59, 'train', NULL, 0") + nvtx("10, 20, 59, NULL, 7, NULL") +
           nvtx("30, 40, 60, 'whole process', NULL, 0") + nvtx("5, NULL, 75, 'NCCL', NULL, 3") +
           nvtx("50, 60, 59, 'ncclAllReduce', NULL, 3") + nvtx("70, NULL, 34, 'here', NULL, 0") +
           nvtx("80, NULL, 59, 'never ends', NULL, 0") + nvtx("90, 91, 40, 'odd', NULL, 0") +
           nvtx("95, 96, 59, 'x', NULL, 9")),
      "annotation \"train\" 100/11 0+100\n"
      "annotation \"forward\" 100/11 10+10\n"
      "annotation \"whole process\" 100/11 30+10\n"
      "annotation \"NCCL:ncclAllReduce\" 100/11 50+10\n"
      "annotation \"here\" 100/11 70+0\n"
      "annotation \"domain 9:x\" 100/11 95+1\n"
      "! NVTX ranges without an end, left out: 1 (row 7)\n"
      "! NVTX events of kinds that a trace has no place for: 1 (type 40)\n");
}

TEST_F(Nsys, KnowsRangesThatMayCrossOthers) {
  const Trace trace = import_trace(
      write(std::string(kNsysTables) + kTexts + nvtx("0, 100, 59, 'outer', NULL, 0") +
            nvtx("50, 200, 60, 'crosses', NULL, 0") + nvtx("70, NULL, 34, 'mark', NULL, 0")));
  ASSERT_EQ(trace.hosts.size(), 3U);
  EXPECT_TRUE(trace.hosts[0].nests);
  EXPECT_FALSE(trace.hosts[1].nests);
  EXPECT_TRUE(trace.hosts[2].nests);
}

TEST_F(Nsys, ReadsPyTorchsRangesAsOps) {
  EXPECT_EQ(read(nvtx("0, 9, 59, 'aten::add, seq = 12, op_id = 7, sizes = [[2, 3], []]', NULL, 0") +
                 nvtx("20, 29, 59, 'AddBackward0, stashed seq=12, seq=40', NULL, 0") +
                 nvtx("30, 39, 59, 'ProfilerStep#3', NULL, 0") +
                 nvtx("40, 49, 59, 'a, seq = b', NULL, 0")),
            "op \"aten::add\" 100/11 0+9 shapes=[[2, 3], []] sequence=12\n"
            "op \"AddBackward0\" 100/11 20+9 sequence=12\n"
            "annotation \"ProfilerStep#3\" 100/11 30+9\n"
            "annotation \"a, seq = b\" 100/11 40+9\n");
}

TEST_F(Nsys, ReadsTablesWithAVersionInTheirName) {
  const std::string rows =
      call_row(0, 10, 100, 5) + kernel(20, 30, 100, 5) + nvtx("0, 9, 59, 'step 1', NULL, 0");
  const std::string plain = read(rows);
  EXPECT_NE(plain.find("kernel"), std::string::npos);
  EXPECT_NE(plain.find("step 1"), std::string::npos);
  int files = 0;
  const auto read_again = [&](const std::string& change) {
    return describe(import_trace(write(std::string(kNsysTables) + kTexts + rows + change,
                                       std::to_string(++files) + ".sqlite")));
  };
  const auto renamed = [](const std::string& table, const std::string& version) {
    return "ALTER TABLE " + table + " RENAME TO " + table + version + ";";
  };
  EXPECT_EQ(read_again(renamed("NVTX_EVENTS", "_V2")), plain);
  EXPECT_EQ(
      read_again(renamed("CUPTI_ACTIVITY_KIND_KERNEL", "_V3") +
                 renamed("CUPTI_ACTIVITY_KIND_RUNTIME", "_V12") + renamed("StringIds", "_V2")),
      plain);
  // A newer table beside the one that is known is named, not mixed with it.
  EXPECT_EQ(read_again("CREATE TABLE NVTX_EVENTS_V2 (start INTEGER);"
                       "INSERT INTO NVTX_EVENTS_V2 VALUES (1);"),
            plain + "! tables of events that a trace has no place for: 1 (NVTX_EVENTS_V2)\n");
}

TEST_F(Nsys, NamesThreads) {
  const Trace trace = import_trace(write(
      std::string(kNsysTables) + kTexts + call_row(0, 1, 100, 1) +
      "INSERT INTO ThreadNames VALUES (6, 20, " + id_of(100, 11) + "), (7, 20, " + id_of(100, 12) +
      "); INSERT INTO PROCESSES VALUES (" + id_of(100) + ", 100, './train');"));
  ASSERT_EQ(trace.threads.size(), 1U);
  EXPECT_EQ(trace.threads[0].name, "python");
  EXPECT_EQ(trace.metadata.at("process"), "\"./train\"");
}

std::string wait(int correlation, const std::string& stream, const std::string& event,
                 const std::string& sync_id, int type = 0) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (500, 600, 0, 1, NULL, " + stream +
         ", " + std::to_string(correlation) + ", " + id_of(100) + ", " + std::to_string(type) +
         ", " + event + ", " + sync_id + ");";
}

std::string event_record(int correlation, int stream, int event, const std::string& sync_id) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0, 0, 1, " + std::to_string(stream) +
         ", " + std::to_string(correlation) + ", " + id_of(100) + ", " + std::to_string(event) +
         ", " + sync_id + ");";
}

TEST_F(Nsys, FindsTheRecordOfTheEventThatIsWaitedFor) {
  const std::string records = event_record(10, 20, 5, "1") + event_record(12, 21, 5, "2") +
                              event_record(14, 22, 5, "3") + kernel(0, 1, 100, 1);
  // The record is found by its sync id, although a later record of the event exists.
  EXPECT_NE(read(records + wait(15, "7", "5", "2", 2))
                .find("sync stream_wait_event 500+100 stream=7 correlation=15 waits_on=21 event=5 "
                      "recorded_by=12\n"),
            std::string::npos);
  std::filesystem::remove(folder_ / "report.sqlite");
  // Without one, the latest record before the wait counts.
  EXPECT_NE(
      read(records + wait(13, "4294967295", "5", "NULL", 1))
          .find("sync event 500+100 stream=- correlation=13 waits_on=21 event=5 recorded_by=12\n"),
      std::string::npos);
  std::filesystem::remove(folder_ / "report.sqlite");
  EXPECT_NE(read(records + wait(9, "7", "5", "NULL", 2))
                .find("sync stream_wait_event 500+100 stream=7 correlation=9 event=5\n"),
            std::string::npos);
}

// Rows of waits and of events say device 0, whatever the device of their context.
TEST_F(Nsys, FindsTheDeviceOfAWaitByItsContext) {
  const Trace trace = import_trace(write(
      std::string(kNsysTables) + kTexts + kernel(0, 1, 100, 1, 3) + event_record(10, 7, 5, "1") +
      wait(20, "7", "4294967295", "NULL", 3) + wait(21, "4294967295", "5", "1", 1)));
  ASSERT_EQ(trace.syncs.size(), 2U);
  ASSERT_EQ(trace.streams.size(), 1U);
  EXPECT_EQ(trace.streams[0].device, 3);
  EXPECT_EQ(trace.syncs[0].stream, 0U);
  EXPECT_EQ(trace.syncs[1].wait_on_stream, 0U);
}

TEST_F(Nsys, BelievesTheCallBeforeTheTypeOfAWait) {
  const std::string text = read(call_row(0, 1, 100, 20, 10) + kernel(0, 1, 100, 1) +
                                wait(20, "4294967295", "4294967295", "NULL", 0) +
                                wait(21, "7", "4294967295", "NULL", 2));
  EXPECT_NE(text.find("sync context 500+100 stream=- correlation=20\nsync stream 500+100 stream=7 "
                      "correlation=21\n! waits whose type differs from that of the call; the type "
                      "of the call is used: 2 (type 0 for a wait of kind context)\n"),
            std::string::npos)
      << text;
}

TEST_F(Nsys, ReadsALaunchOfAWholeGraphAsOneActivity) {
  const std::string text = read(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId "
      "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, "
      "graphExecId INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (100, 900, 0, "
      "7, 3, " +
      id_of(100) + ", 4, 5);" + call_row(0, 50, 100, 3, 12));
  EXPECT_EQ(text.substr(0, text.find('!')),
            "runtime \"cudaGraphLaunch\" 100/11 0+50 correlation=3\n"
            "kernel \"CUDA graph 5\" 0/7 100+800 correlation=3\n");
}

TEST_F(Nsys, ReadsMemoryOfTheDriverAndOfPools) {
  EXPECT_EQ(read("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, "
                 "deviceId INTEGER, address INTEGER, bytes INTEGER, memKind INTEGER, "
                 "memoryOperationType INTEGER, correlationId INTEGER, streamId INTEGER, "
                 "localMemoryPoolAddress INTEGER, localMemoryPoolSize INTEGER, "
                 "localMemoryPoolUtilizedSize INTEGER);" +
                 call_row(0, 9, 100, 1) + "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, " +
                 id_of(100) + ", 0, 4096, 100, 2, 0, 1, NULL, NULL, NULL, NULL), (2, " +
                 id_of(100) + ", 0, 8192, 60, 2, 0, 1, 7, 1, 1000, 60), (3, " + id_of(100) +
                 ", 0, 4096, 100, 2, 1, 1, NULL, NULL, NULL, NULL), (4, " + id_of(100) +
                 ", 0, 1, 50, 1, 0, 1, NULL, NULL, NULL, NULL);"),
            "runtime \"cudaLaunchKernel\" 100/11 0+9 correlation=1\n"
            "memory device=0 1 bytes=100 address=4096\n"
            "memory device=0 2 bytes=60 address=8192 allocated=60 reserved=1000\n"
            "memory device=0 3 bytes=-100 address=4096\n"
            "memory device=-1 4 bytes=50 address=1\n");
  const Trace trace = import_trace(folder_ / "report.sqlite");
  EXPECT_EQ(trace.memory[0].action, MemoryAction::segment_alloc);
  EXPECT_EQ(trace.memory[1].action, MemoryAction::block);
  EXPECT_EQ(trace.memory[2].action, MemoryAction::segment_free);
}

TEST_F(Nsys, FindsTheThreadThatTookMemoryByTheTimeOfItsCall) {
  const Trace trace = import_trace(write(
      "CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, "
      "'cudaMalloc_v3020'), (2, 'cudaLaunchKernel_v7000');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);"
      "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, deviceId, bytes, memKind, "
      "memoryOperationType);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 90, " +
      id_of(100, 11) + ", 1, 2), (20, 30, " + id_of(100, 12) + ", 2, 1), (22, 80, " +
      id_of(100, 13) +
      ", 3, 2);"
      "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (25, 0, 64, 2, 0);"));
  ASSERT_EQ(trace.memory.size(), 1U);
  EXPECT_EQ(trace.threads.at(trace.memory[0].thread).id, 12);
}

TEST_F(Nsys, JoinsCallsWithinTheirProcessOnly) {
  const std::string path = write(std::string(kNsysTables) + kTexts + call_row(1000, 1010, 100, 5) +
                                 call_row(1500, 1510, 200, 5) + call_row(1600, 1610, 300, 5) +
                                 kernel(2000, 2100, 200, 5, 1) + kernel(3000, 3300, 100, 5, 0) +
                                 kernel(3400, 3500, 100, 5, 0));
  EXPECT_EQ(failure([&] { import_trace(path); }),
            path + ": must contain one trace, but contains 2: \"" + path + ":100\", \"" + path +
                ":200\"");
  const std::vector<Trace> traces = import_all(path);
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].rank, 0);
  EXPECT_EQ(traces[0].world_size, 2);
  EXPECT_EQ(traces[1].rank, 1);
  EXPECT_EQ(describe(traces[0]),
            "runtime \"cudaLaunchKernel\" 100/11 0+10 correlation=5\nkernel \"gemm<float>(int)\" "
            "0/7 2000+300 correlation=5 grid=8 block=128\nkernel \"gemm<float>(int)\" 0/7 2400+100 "
            "correlation=5 grid=8 block=128\n! processes without device work next to others with "
            "it, left out: 1 (process 300)\n! ranks are numbered in the order of devices and "
            "processes in the report: 1 (process 100 is rank 0)\n");
  EXPECT_EQ(describe(import_trace(path + ":200")),
            "runtime \"cudaLaunchKernel\" 200/11 0+10 correlation=5\nkernel \"gemm<float>(int)\" "
            "1/7 500+100 correlation=5 grid=8 block=128\n! processes without device work next to "
            "others with it, left out: 1 (process 300)\n! ranks are numbered in the order of "
            "devices and processes in the report: 1 (process 200 is rank 1)\n");
  EXPECT_EQ(
      failure([&] { import_trace(path + ":300"); }),
      path + ":300: the report has no such process; its processes with device work are 100, 200");
  // A folder with the report, or an archive, gives all processes, too.
  EXPECT_EQ(import_all(folder_.path()).size(), 2U);
  const std::string archive =
      folder_.write("a/x.tar.gz", gzip(tar({{"r.sqlite", contents_of(path)}})));
  EXPECT_EQ(import_all(archive).size(), 2U);
  EXPECT_EQ(import_trace(archive + ":r.sqlite:200").rank, 1);
}

TEST_F(Nsys, TakesRanksFromMpi) {
  const std::string path =
      write(std::string(kNsysTables) + kTexts + kernel(0, 1, 100, 5, 0) + kernel(0, 2, 200, 5, 1) +
            "CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER); INSERT "
            "INTO MPI_RANKS VALUES (" +
            id_of(100, 1) + ", 5), (" + id_of(200, 1) + ", 4);");
  const std::vector<Trace> traces = import_all(path);
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].rank, 4);
  EXPECT_EQ(traces[0].devices[0].duration_ns, 2);
  EXPECT_EQ(traces[1].rank, 5);
  EXPECT_EQ(traces[1].world_size, 6);
}

TEST_F(Nsys, OrdersProcessesByTheDevicesOfTheMachine) {
  // Each process sees one device, which CUDA numbers 0.
  const std::vector<Trace> traces = import_all(
      write(std::string(kNsysTables) + kTexts + kernel(0, 1, 100, 5) + kernel(0, 2, 200, 5) +
            "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount "
            "INTEGER, computeMajor INTEGER, computeMinor INTEGER);"
            "INSERT INTO TARGET_INFO_GPU VALUES (0, 'A', 8, 1, 9, 0), (1, 'B', 8, 2, 9, 0);"
            "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
            "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 100), (0, 0, 200);"));
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].devices[0].duration_ns, 2);
  ASSERT_EQ(traces[0].properties.size(), 1U);
  EXPECT_EQ(traces[0].properties[0].name, "A");
  EXPECT_EQ(traces[1].properties[0].name, "B");
  EXPECT_EQ(traces[1].properties[0].ordinal, 0);
}

TEST_F(Nsys, ReadsOldReportsWithoutWhatCameLater) {
  const std::string path = write(
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT "
      "NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, demangledName INT NOT NULL);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId "
      "INT, nameId INT);"
      "CREATE TABLE TARGET_INFO_CUDA_GPU (id INT, name TEXT, numMultiprocessors INT, "
      "computeCapabilityMajor INT, computeCapabilityMinor INT);"
      "INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0, 'Tesla V100', 80, 7, 0);"
      "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT);"
      "INSERT INTO NVTX_EVENTS VALUES (0, 50, 59, 'step', " +
      id_of(100, 11) + ");" + kTexts +
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 5, 1);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, " +
      id_of(100, 11) + ", 5, 3);");
  const Trace trace = import_trace(path);
  EXPECT_EQ(describe(trace),
            "runtime \"cudaLaunchKernel\" 100/11 10+10 correlation=5\n"
            "annotation \"step\" 100/11 0+50\n"
            "kernel \"gemm<float>(int)\" 0/7 100+100 correlation=5\n");
  ASSERT_EQ(trace.properties.size(), 1U);
  EXPECT_EQ(trace.properties[0].multiprocessors, 80);
  EXPECT_EQ(trace.properties[0].major, 7);
}

TEST_F(Nsys, SaysSoWhereOldReportsDoNotTellTheProcess) {
  const std::string path = write(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId "
      "INT, correlationId INT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, "
      "correlationId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 5);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, " +
      id_of(100, 11) + ", 5), (10, 20, " + id_of(200, 11) + ", 5);");
  EXPECT_EQ(describe(import_trace(path)),
            "runtime \"(unnamed call)\" 100/11 0+10 correlation=5\nruntime \"(unnamed call)\" "
            "200/11 0+10 correlation=5\nkernel \"(unnamed kernel)\" 0/7 90+100 correlation=5\n! "
            "the device records do not name their process, and there are several; calls and device "
            "work may be matched wrongly: 1\n! rows without a name: 3 (call 1)\n");
}

TEST_F(Nsys, KeepsTheClockAndTheProfilersWords) {
  const Trace trace = import_trace(write(
      std::string(kNsysTables) + kTexts + kernel(-50, 50, 100, 1) +
      "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);"
      "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
      "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION_MAJOR', '4'), "
      "('EXPORT_PRODUCT_VERSION', '2027.1');"
      "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, text TEXT, globalPid "
      "INTEGER);"
      "INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 2, 'Not all CUDA events\nmight have been "
      "collected.', " +
      id_of(100) + "), (0, 2, 'of another process', " + id_of(7) +
      "), (0, 1, 'fine', NULL);"
      "CREATE TABLE OSRT_API (start INTEGER); INSERT INTO OSRT_API VALUES (1);"));
  EXPECT_EQ(trace.origin_ns, 1699999999999999950);
  EXPECT_EQ(trace.metadata.at("nsys_version"), "\"2027.1\"");
  EXPECT_EQ(describe(trace),
            "kernel \"gemm<float>(int)\" 0/7 0+100 correlation=1 grid=8 block=128\n! the tables "
            "are newer than the known versions; anything that was renamed is missing from the "
            "trace: 1 (version 4)\n! Nsight Systems: Not all CUDA events might have been "
            "collected.: 1\n! tables of events that a trace has no place for: 1 (OSRT_API)\n");
}

TEST_F(Nsys, CountsOddRows) {
  EXPECT_EQ(read(kernel(200, 100, 100, 1) +
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (9223372036854775807, 0, 0, 1, 7, "
                 "6, " +
                 id_of(100) + ", 0, 16, NULL, 2), (300, 301, 0, 1, 7, 6, " + id_of(100) +
                 ", 0, -16, NULL, NULL);" +
                 "INSERT INTO StringIds VALUES (50, CAST(x'61ff62' AS TEXT));" +
                 call_row(100, 110, 100, 9, 50) + call_row(100, 110, 100, 9, 99)),
            "runtime \"a\xef\xbf\xbd"
            "b\" 100/11 0+10 correlation=9\n"
            "runtime \"(unnamed call)\" 100/11 0+10 correlation=9\n"
            "kernel \"gemm<float>(int)\" 0/7 100+0 correlation=1 grid=8 block=128\n"
            "fill \"Memset\" 0/7 200+1 correlation=6\n"
            "! rows whose times are impossible, left out: 1 (row 1)\n"
            "! rows that end before they start, read as 0 long: 1 (row 1)\n"
            "! rows without a name: 1 (call 2)\n"
            "! strings that are not valid UTF-8: 1\n"
            "! rows with a negative number of bytes, read as 0: 1 (row 2)\n");
}

TEST_F(Nsys, ReadsCompressedReports) {
  const std::string path =
      write(std::string(kNsysTables) + kTexts + kernel(0, 5, 100, 1), "plain.sqlite");
  const std::string bytes = contents_of(path);
  const std::string plain = describe(import_trace(path));
  EXPECT_EQ(describe(import_trace(folder_.write("r.sqlite.gz", gzip(bytes)))), plain);
  EXPECT_EQ(describe(import_trace(folder_.write("r.sqlite.zst", zstd(bytes)))), plain);
  EXPECT_EQ(describe(import_trace(folder_.write("a b#?%.sqlite", bytes))), plain);
  const std::string cut = folder_.write("cut.sqlite.gz", gzip(bytes).substr(0, 900));
  EXPECT_EQ(failure([&] { import_trace(cut); }),
            cut +
                ": must be a trace, but is a SQLite database that cannot be read: the gzip data "
                "ends in the middle");
  // Nothing is left on disk, neither a journal nor unpacked files.
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().string().find("-journal"), std::string::npos);
}

TEST_F(Nsys, TellsOtherDatabasesApart) {
  const std::pair<std::string, std::string> cases[] = {
      {"CREATE TABLE StringTable (_id_ INTEGER, value TEXT)",
       "a SQLite database of nvprof, the predecessor of Nsight Systems; record with nsys profile "
       "and export with nsys export --type sqlite"},
      {"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER, start INTEGER)",
       "a SQLite database of nvprof, the predecessor of Nsight Systems; record with nsys profile "
       "and export with nsys export --type sqlite"},
      {"CREATE TABLE bookmarks (url TEXT)", "a SQLite database without the tables of a profiler"},
      {"CREATE TABLE t (url TEXT); CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start FROM t",
       "a SQLite database without the tables of a profiler"},
  };
  int number = 0;
  for (const auto& [sql, message] : cases) {
    const std::string path = write(sql, "case" + std::to_string(number++) + ".sqlite");
    EXPECT_EQ(failure([&path = path] { import_trace(path); }),
              path + ": must be a trace, but is " + message);
  }
  const std::string empty = write("CREATE TABLE StringIds (id INTEGER, value TEXT)");
  EXPECT_EQ(failure([&] { import_trace(empty); }),
            empty +
                ": must have CUDA or NVTX records, but has none; apart from tables of "
                "names, it has StringIds");
}

TEST_F(Nsys, RefusesWhatIsCut) {
  const std::string bytes =
      contents_of(write(std::string(kNsysTables) + kTexts + kernel(0, 5, 100, 1), "whole.sqlite"));
  const std::string cut = folder_.write("cut.sqlite", bytes.substr(0, bytes.size() - 4096));
  const std::string message = failure([&] { import_trace(cut); });
  EXPECT_EQ(message.find(cut + ": must be a trace, but is a SQLite database that cannot be read: "
                               "the database is cut off: it must have "),
            0U)
      << message;
}

/// A small report with every table that is read.
std::string rich_report() {
  std::string sql = std::string("PRAGMA page_size=512;") + kNsysTables + kTexts;
  for (int i = 0; i < 40; ++i) {
    sql += call_row(i * 100, i * 100 + 10, 100 + i % 2, i) +
           kernel(i * 100 + 20, i * 100 + 90, 100 + i % 2, i);
    sql += nvtx(std::to_string(i * 100) + ", " + std::to_string(i * 100 + 5) +
                ", 59, 'aten::add, seq = 1, sizes = [[2]]', NULL, 0");
    sql += event_record(i, 7, 5, std::to_string(i)) + wait(i, "8", "5", std::to_string(i));
  }
  return sql;
}

TEST_F(Nsys, SurvivesAnyDamagedByte) {
  const std::string bytes = contents_of(write(rich_report(), "whole.sqlite"));
  int read = 0;
  int refused = 0;
  std::uint32_t random = 1;
  for (std::size_t at = 0; at < bytes.size(); at += at < 1024 ? 3 : 1 + bytes.size() / 700) {
    std::string damaged = bytes;
    random = random * 1664525 + 1013904223;
    damaged[at] =
        static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ (1 + (random >> 24U) % 255));
    const std::string path = folder_.write("damaged.sqlite", damaged);
    try {
      for (const Trace& trace : import_all(path)) read += trace.record_count() > 0 ? 1 : 0;
    } catch (const TraceError& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find(path), 0U) << error.what();
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 10);
}

void put_page_number(std::string& bytes, std::size_t at, std::size_t number) {
  for (int i = 0; i < 4; ++i)
    bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(number >> (24 - 8 * i));
}

/// Chains the inner pages of all trees: every child of a page is the next inner page, so that a
/// walk over the table does not end in any reasonable time.
std::string chained(std::string bytes) {
  constexpr std::size_t kPage = 512;
  std::vector<std::size_t> inner;
  std::size_t leaf = 0;
  for (std::size_t page = 1; page < bytes.size() / kPage; ++page) {
    if (bytes[page * kPage] == 5) inner.push_back(page);
    if (bytes[page * kPage] == 13) leaf = page;
  }
  for (std::size_t i = 0; i < inner.size() && i < 12; ++i) {
    const std::size_t page = inner[i] * kPage;
    const std::size_t next = (i + 1 < inner.size() && i < 11 ? inner[i + 1] : leaf) + 1;
    const auto byte = [&](std::size_t at) {
      return std::size_t{static_cast<unsigned char>(bytes[page + at])};
    };
    put_page_number(bytes, page + 8, next);
    for (std::size_t cell = 0; cell < (byte(3) << 8U | byte(4)); ++cell)
      put_page_number(bytes, page + (byte(12 + 2 * cell) << 8U | byte(13 + 2 * cell)), next);
  }
  return bytes;
}

TEST_F(Nsys, StopsAtMoreRowsThanTheFileHasRoomFor) {
  std::string sql =
      "PRAGMA page_size=512; CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000) "
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1, 2 FROM n;";
  const std::string path =
      folder_.write("x.sqlite", chained(contents_of(write(sql, "whole.sqlite"))));
  EXPECT_EQ(import_trace(folder_ / "whole.sqlite").hosts.size(), 50000U);
  const std::string message = failure([&] { import_trace(path); });
  EXPECT_NE(message.find("the table CUPTI_ACTIVITY_KIND_RUNTIME, row "), std::string::npos)
      << message;
  EXPECT_NE(message.find("there are more rows than the file has room for"), std::string::npos)
      << message;
}

TEST_F(Nsys, ReadsAReportThatIsSetUpForALog) {
  const std::string path =
      write("PRAGMA journal_mode=WAL;" + std::string(kNsysTables) + kTexts + kernel(0, 5, 100, 1));
  EXPECT_EQ(describe(import_trace(path)),
            "kernel \"gemm<float>(int)\" 0/7 0+5 correlation=1 grid=8 block=128\n");
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(path + "-shm"));
}

TEST_F(Nsys, KeepsACopyOfEachProcess) {
  std::string rows = kNsysTables + std::string(kTexts);
  for (int i = 0; i < 1500; ++i) rows += kernel(i * 10, i * 10 + 1 + i % 2, 100 + i % 2, i, i % 2);
  const std::string path = write("BEGIN;" + rows + "COMMIT;");
  const ImportOptions options{.cache_folder = folder_ / "cache"};
  for (int time = 0; time < 2; ++time) {
    const std::vector<Trace> traces = import_all(path, options);
    ASSERT_EQ(traces.size(), 2U);
    EXPECT_EQ(traces[0].devices[0].duration_ns, 1);
    EXPECT_EQ(traces[1].devices[0].duration_ns, 2);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "cache"), {}), 2);
}

TEST_F(Nsys, HasNoEyeForTriggersViewsAndGeneratedColumns) {
  const std::string text = describe(import_trace(write(
      std::string(kNsysTables) + kTexts + kernel(0, 5, 100, 1) +
      "ALTER TABLE PROCESSES ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(900000000)));"
      "CREATE VIEW CUPTI_ACTIVITY_KIND_OVERHEAD AS WITH RECURSIVE n(start) AS (SELECT 1 UNION "
      "ALL SELECT start + 1 FROM n) SELECT start, start AS end FROM n;"
      "CREATE TRIGGER t AFTER INSERT ON PROCESSES BEGIN DELETE FROM StringIds; END;")));
  EXPECT_EQ(text, "kernel \"gemm<float>(int)\" 0/7 0+5 correlation=1 grid=8 block=128\n");
}

TEST_F(Nsys, SaysHowStreamsWereCreated) {
  const std::string tables =
      "CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INTEGER NOT NULL, "
      "processId INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL);"
      "CREATE TABLE TARGET_INFO_CUDA_STREAM (streamId INTEGER NOT NULL, processId INTEGER NOT "
      "NULL, contextId INTEGER NOT NULL, flag INTEGER NOT NULL);"
      "INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (7, 100, 0, 1), (7, 200, 3, 1);"
      "INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (7, 100, 1, 3), (13, 100, 1, 1), (20, 100, 1, 2),"
      "  (21, 100, 1, 0), (13, 200, 1, 2);";
  const Trace trace = import_trace(
      write(std::string(kNsysTables) + kTexts + call_row(100, 150, 100, 1) +
            kernel(200, 300, 100, 1) + kernel(200, 300, 100, 1, 0, 13) +
            kernel(200, 300, 100, 1, 0, 20) + kernel(200, 300, 100, 1, 0, 21) + tables));
  ASSERT_EQ(trace.streams.size(), 4U);
  std::string seen;
  const std::vector<StreamFlag> flags = stream_flags(trace);
  for (std::size_t i = 0; i < flags.size(); ++i) {
    seen += std::to_string(trace.streams[i].id) + "=" + std::to_string(static_cast<int>(flags[i])) +
            " ";
  }
  EXPECT_EQ(seen, "7=3 13=1 20=2 21=0 ");
}

}  // namespace
}  // namespace foretrace
