#include "import/common/device_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "foretrace/import.h"
#include "recorded.h"

namespace foretrace {
namespace {

/// The names of lanes of a JAX trace with one GPU, as its Chrome traces begin.
constexpr const char* kJaxLanes = R"x(
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
    {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "Stream #118(Compute)"}},
    {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    {"ph": "M", "pid": 1, "tid": 3, "name": "thread_name", "args": {"name": "Steps"}},
    {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}},
    {"ph": "M", "pid": 701, "tid": 5, "name": "thread_name", "args": {"name": "python"}})x";

constexpr const char* kJaxEvents = R"x(
    {"ph": "X", "pid": 701, "tid": 5, "ts": 10, "dur": 90, "name": "train", "args": {"step_num": "7"}},
    {"ph": "X", "pid": 701, "tid": 5, "ts": 10, "dur": 5, "name": "$train.py:3 step"},
    {"ph": "X", "pid": 701, "tid": 5, "ts": 11, "dur": 3, "name": "PjitFunction(step)", "args": {}},
    {"ph": "X", "pid": 701, "tid": 5, "ts": 12, "dur": 1, "name": "cuGraphLaunch (CudaGraph:39)",
     "args": {"correlation_id": "8"}},
    {"ph": "X", "pid": 701, "tid": 5, "ts": 20, "dur": 30, "name": "block_until_ready"},
    {"ph": "X", "pid": 1, "tid": 1, "ts": 20, "dur": 9.5, "name": "fusion", "args": {"correlation_id": "8",
     "cuda_graph_node_id": "44", "kernel_details": "regs:8 grid:128,2,1 block:64,1,1 occ_pct:25"}},
    {"ph": "X", "pid": 1, "tid": 1, "ts": 30, "dur": 1, "name": "MemcpyD2H",
     "args": {"correlation_id": "9", "memcpy_details": "kind_src:device kind_dst:host size:64 dest:0 async:1"}},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 20, "dur": 11, "name": "fusion.1"},
    {"ph": "X", "pid": 1, "tid": 3, "ts": 20, "dur": 11, "name": "7"})x";

constexpr const char* kJaxRead = R"x(
annotation "ProfilerStep#7" 701/5 0+90000
python "$train.py:3 step" 701/5 0+5000
op "PjitFunction(step)" 701/5 1000+3000
runtime "cuGraphLaunch (CudaGraph:39)" 701/5 2000+1000 correlation=8
runtime "block_until_ready" 701/5 10000+30000
kernel "fusion" 0/118 10000+9500 correlation=8 graph_node=44 grid=256 block=64
copy "MemcpyD2H" 0/118 20000+1000 out bytes=64 correlation=9
)x";

TEST(DeviceLanes, StreamsOfAJaxTraceAreWorkAndTheirSummariesAreNot) {
  EXPECT_EQ(recorded(std::string("[") + kJaxLanes + "," + kJaxEvents + "]"), kJaxRead);
}

TEST(DeviceLanes, NamesMayFollowTheEvents) {
  EXPECT_EQ(recorded(std::string("[") + kJaxEvents + "," + kJaxLanes + "]"), kJaxRead);
}

TEST(DeviceLanes, ADeviceWithoutStreamsWorksOnItsOps) {
  EXPECT_EQ(recorded(R"x([
    {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:1"}},
    {"ph": "M", "pid": 3, "tid": 1, "name": "thread_name", "args": {"name": "XLA Modules"}},
    {"ph": "M", "pid": 3, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    {"ph": "M", "pid": 3, "tid": 3, "name": "thread_name", "args": {"name": "Steps"}},
    {"ph": "X", "pid": 3, "tid": 3, "ts": 10, "dur": 20, "name": "41"},
    {"ph": "X", "pid": 3, "tid": 1, "ts": 10, "dur": 20, "name": "jit_step(1)"},
    {"ph": "X", "pid": 3, "tid": 2, "ts": 10, "dur": 8, "name": "while.1"},
    {"ph": "X", "pid": 3, "tid": 2, "ts": 10, "dur": 3, "name": "fusion.1"},
    {"ph": "X", "pid": 3, "tid": 2, "ts": 13, "dur": 5, "name": "fusion.2"},
    {"ph": "X", "pid": 3, "tid": 2, "ts": 18, "dur": 5, "name": "copy.3"}])x"),
            R"x(
annotation "ProfilerStep#41" 3/3 0+20000
kernel "fusion.1" 1/2 0+3000
kernel "fusion.2" 1/2 3000+5000
kernel "copy.3" 1/2 8000+5000
)x");
}

TEST(DeviceLanes, OpsOfATpuBelongToTheCallOfTheirModule) {
  EXPECT_EQ(recorded(R"x([
    {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}},
    {"ph": "M", "pid": 3, "tid": 1, "name": "thread_name", "args": {"name": "XLA Modules"}},
    {"ph": "M", "pid": 3, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    {"ph": "X", "pid": 9, "tid": 9, "ts": 0, "dur": 4, "name": "PjitFunction(f)"},
    {"ph": "X", "pid": 9, "tid": 9, "ts": 1, "dur": 2, "name": "PjitFunction(f)"},
    {"ph": "X", "pid": 9, "tid": 9, "ts": 5, "dur": 4, "name": "PjitFunction(g)"},
    {"ph": "X", "pid": 3, "tid": 1, "ts": 10, "dur": 5, "name": "jit_f(1)"},
    {"ph": "X", "pid": 3, "tid": 2, "ts": 10, "dur": 5, "name": "a"},
    {"ph": "X", "pid": 3, "tid": 1, "ts": 15, "dur": 5, "name": "jit_g(1)"},
    {"ph": "X", "pid": 3, "tid": 2, "ts": 15, "dur": 2, "name": "b"},
    {"ph": "X", "pid": 3, "tid": 2, "ts": 30, "dur": 2, "name": "c"}])x"),
            R"x(
runtime "PjitFunction(f)" 9/9 0+4000 correlation=1
op "PjitFunction(f)" 9/9 1000+2000
runtime "PjitFunction(g)" 9/9 5000+4000 correlation=2
kernel "a" 0/2 10000+5000 correlation=1
kernel "b" 0/2 15000+2000 correlation=2
kernel "c" 0/2 30000+2000
)x");
}

TEST(DeviceLanes, QueuesOfRocprofAreJoinedToTheirLaunchesByArrows) {
  EXPECT_EQ(recorded(R"x({"traceEvents": [{},
    {"args": {"name": "CPU HIP API"}, "ph": "M", "pid": 2, "name": "process_name"},
    {"args": {"name": "GPU0"}, "ph": "M", "pid": 6, "name": "process_name", "sort_index": 3},
    {"args": {"name": "GPU1"}, "ph": "M", "pid": 7, "name": "process_name", "sort_index": 4},
    {"ph": "X", "name": "hipLaunchKernel", "pid": 2, "tid": 42, "ts": "5000", "dur": "8",
     "args": {"BeginNs": "5000120", "EndNs": "5008000", "DurationNs": "7880", "args": "( kernel(k1))"}},
    {"ts": "5000", "ph": "s", "cat": "DataFlow", "id": "1", "pid": "2", "tid": "42", "name": "dep"},
    {"ts": "5060", "ph": "t", "cat": "DataFlow", "id": "1", "pid": "6", "tid": "1", "name": "dep"},
    {"ph": "X", "name": "k1", "pid": 6, "tid": 1, "ts": "5060", "dur": "14",
     "args": {"BeginNs": "5060340", "EndNs": "5074340", "dev-id": "0", "queue-id": "1", "DurationNs": "14000"}},
    {"ph": "X", "name": "hipLaunchKernel", "pid": 2, "tid": 42, "ts": "5010", "dur": "8", "args": {}},
    {"ts": "5012", "ph": "s", "cat": "DataFlow", "id": "2", "pid": "2", "tid": "42", "name": "dep"},
    {"ts": "5070", "ph": "t", "cat": "DataFlow", "id": "2", "pid": "7", "tid": "0", "name": "dep"},
    {"ph": "X", "name": "k2", "pid": 7, "tid": 0, "ts": "5070", "dur": "14", "args": {}},
    {"ph": "X", "name": "hipDeviceSynchronize", "pid": 2, "tid": 42, "ts": "5020", "dur": "70", "args": {}}]})x"),
            R"x(
runtime "hipLaunchKernel" 2/42 0+7880 correlation=1
runtime "hipLaunchKernel" 2/42 9880+8000 correlation=2
runtime "hipDeviceSynchronize" 2/42 19880+70000
kernel "k1" 0/1 60220+14000 correlation=1
kernel "k2" 1/0 69880+14000 correlation=2
)x");
}

TEST(DeviceLanes, TheLongestOfSeveralMarksIsTheStep) {
  EXPECT_EQ(recorded(R"x([
    {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 9, "name": "fit", "args": {"step_num": 3}},
    {"ph": "X", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "name": "eval", "args": {"step_num": 3}}])x"),
            R"x(
annotation "ProfilerStep#3" 1/1 0+9000
annotation "eval" 1/1 10000+5000
)x");
}

/// Four steps of 1 ms. Each launches work that takes `busy_us`; the next step begins 900 us after
/// the launch.
std::string four_steps(int busy_us) {
  std::string text = std::string("[") + kJaxLanes;
  const auto add = [&](int process, int start, int length, const std::string& name,
                       const std::string& args) {
    text += R"(, {"ph": "X", "tid": )" + std::string(process == 1 ? "1" : "5") + R"(, "pid": )" +
            std::to_string(process) + R"(, "ts": )" + std::to_string(start) + R"(, "dur": )" +
            std::to_string(length) + R"(, "name": ")" + name + R"(", "args": {)" + args + "}}";
  };
  for (int step = 0; step < 4; ++step) {
    const std::string id = R"("correlation_id": )" + std::to_string(step + 1);
    add(701, 1000 * step, 990, "train", R"("step_num": )" + std::to_string(step));
    add(701, 1000 * step, 90, "cuLaunchKernel", id);
    add(1, 1000 * step + 100, busy_us, "fusion", id);
  }
  return text + "]";
}

TEST(DeviceLanes, AStretchWithoutEventsUntilTheDeviceIsDoneIsAWait) {
  const std::string found = recorded(four_steps(700));
  for (const char* wait : {"90000+710000", "1090000+710000", "2090000+710000"}) {
    const std::string line =
        std::string("runtime \"block_until_ready (not recorded)\" 701/5 ") + wait;
    EXPECT_NE(found.find(line), std::string::npos) << found;
  }
  EXPECT_NE(found.find("device's work: 4\n"), std::string::npos) << found;
  // Where most of the stretch follows the work, the host is busy with something else.
  EXPECT_EQ(recorded(four_steps(300)).find("not recorded"), std::string::npos);
}

// Five steps of a network of six layers, recorded on an NVIDIA H200 with JAX 0.11. The numbers are
// those of a count of the file's JSON.
TEST(DeviceLanes, ARealProfileHasItsKernelsStepsAndLaunches) {
  const Trace trace = import_trace(std::string(FORETRACE_SOURCE_DIR) +
                                   "/tests/import/recordings/jax-h200-mlp.trace.json.gz");
  const auto count_hosts = [&](auto wanted) {
    return std::count_if(trace.hosts.begin(), trace.hosts.end(), wanted);
  };
  EXPECT_EQ(trace.devices.size(), 185U);
  ASSERT_EQ(trace.streams.size(), 1U);
  EXPECT_EQ(trace.streams[0].id, 14);
  EXPECT_EQ(std::count_if(trace.devices.begin(), trace.devices.end(),
                          [](const DeviceRecord& record) {
                            return record.correlation >= 1 && record.correlation <= 5 &&
                                   record.graph_node != 0 && record.grid != 0;
                          }),
            185);
  EXPECT_EQ(count_hosts([&](const HostRecord& record) {
              return std::string_view(trace.names[record.name]).starts_with("ProfilerStep#");
            }),
            5);
  EXPECT_EQ(count_hosts([](const HostRecord& record) {
              return record.kind == HostKind::runtime && record.correlation != 0;
            }),
            5);
  EXPECT_EQ(count_hosts([&](const HostRecord& record) {
              return trace.names[record.name] == "block_until_ready (not recorded)";
            }),
            5);
}

TEST(DeviceLanes, KnowsDevicesByTheirNames) {
  const std::pair<const char*, int> cases[] = {{"/device:GPU:3", 3},
                                               {"/job:worker/task:0/device:TPU:12", 12},
                                               {"GPU0", 0},
                                               {"NPU 2", 2},
                                               {"Ascend Hardware", 0},
                                               {"COPY", 0},
                                               {"/device:CPU:0", -1},
                                               {"/host:CPU", -1},
                                               {"GPU 0 Counters", -1},
                                               {"/device:GPU:", -1},
                                               {"GPU", -1},
                                               {"python", -1},
                                               {"/device:GPU:99999999", -1},
                                               {"", -1},
                                               {"/device:CUSTOM:x", -1}};
  for (const auto& [name, ordinal] : cases)
    EXPECT_EQ(device_in_name(name).value_or(-1), ordinal) << name;
}

TEST(DeviceLanes, CategoriesOfUnknownDevicesAreKnownByTheirEnd) {
  EXPECT_EQ(recorded(R"x([
    {"ph": "X", "cat": "mtia_ccp_events", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 1,
     "args": {"device": 0, "stream": 7}},
    {"ph": "X", "cat": "npu_kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
    {"ph": "X", "cat": "NPU_MEMCPY", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 2, "dur": 1},
    {"ph": "X", "cat": "runtime", "name": "npuLaunch", "pid": 5, "tid": 5, "ts": 3, "dur": 1,
     "args": {"correlation": 4}},
    {"ph": "X", "cat": "async_cpu", "name": "?", "pid": 5, "tid": 5, "ts": 3, "dur": 1}])x"),
            R"x(
runtime "npuLaunch" 5/5 3000+1000 correlation=4
kernel "k" 0/7 0+1000
kernel "k" 0/7 1000+1000
copy "Memcpy HtoD" 0/7 2000+1000 in
! events of an unknown category, left out: 1 (at byte 460)
)x");
}

}  // namespace
}  // namespace foretrace
