#include <gtest/gtest.h>

#include "import/common/cuda_words.h"
#include "recorded.h"

namespace foretrace {
namespace {

TEST(Kineto, ReadsAnOperatorItsCallAndItsKernel) {
  EXPECT_EQ(recorded(R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 6, "ts": 100, "dur": 20,
     "args": {"External id": 3, "Sequence number": 9, "Fwd thread id": 1, "Input Dims": [[2, 3], []],
              "Input type": ["float", ""], "Concrete Inputs": ["", "1"], "Ev Idx": 0}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 6, "ts": 105, "dur": 4,
     "args": {"cbid": 211, "correlation": 12, "External id": 3}},
    {"ph": "X", "cat": "kernel", "name": "gemm<float>", "pid": 0, "tid": 7, "ts": 115, "dur": 30,
     "args": {"External id": 3, "device": 0, "stream": 7, "correlation": 12, "grid": [128, 2, 1],
              "block": [32, 4, 1], "graph node id": 0}}
  ]})"),
            R"(
op "aten::mm" 5/6 0+20000 external=3 shapes=[[2, 3], []] types=["float", ""] values=["", "1"] sequence=9 forward_thread=1
runtime "cudaLaunchKernel" 5/6 5000+4000 correlation=12 external=3
kernel "gemm<float>" 0/7 15000+30000 correlation=12 external=3 grid=256 block=128
)");
}

TEST(Kineto, ReadsTheCategoriesOf2021) {
  EXPECT_EQ(recorded(R"x({"traceEvents": [{},
    {"ph": "X", "cat": "Operator", "name": "aten::add", "pid": 5, "tid": "6", "ts": 10, "dur": 2,
     "args": {"External id": 1, "Input dims": [[4]], "Call stack": "a.py(1): f;b.py(2): g"}},
    {"ph": "X", "cat": "Operator", "name": "ProfilerStep#2", "pid": 5, "tid": "6", "ts": 10, "dur": 9, "args": {}},
    {"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 5, "tid": "6", "ts": 11, "dur": 1,
     "args": {"correlation": 2, "external id": 1}},
    {"ph": "X", "cat": "Kernel", "name": "add", "pid": 0, "tid": "stream 7", "ts": 12, "dur": 0,
     "args": {"correlation": 1, "external id": 1}},
    {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": "stream 7", "ts": 13,
     "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 2, "bytes": 64}},
    {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 7", "ts": 17, "dur": 3,
     "args": {"bytes": 32}},
    {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Traces", "tid": "PyTorch Profiler", "ts": 1,
     "dur": 90},
    {"ph": "s", "id": 2, "pid": 5, "tid": 6, "ts": 11, "cat": "async", "name": "launch"}
  ]})x"),
            R"x(
op "aten::add" 5/6 0+2000 external=1 shapes=[[4]] stack=a.py(1): f;b.py(2): g
annotation "ProfilerStep#2" 5/6 0+9000
runtime "cudaMemcpyAsync" 5/6 1000+1000 correlation=2 external=1
kernel "add" 0/7 2000+0 correlation=1 external=1
copy "Memcpy HtoD (Pinned -> Device)" 0/7 3000+3000 in pinned bytes=64 correlation=2
fill "Memset (Device)" 0/7 7000+3000 bytes=32
)x");
}

TEST(Kineto, ReadsTheOtherKindsOfEvents) {
  EXPECT_EQ(recorded(R"([
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 9},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "step", "pid": 0, "tid": 7, "ts": 0, "dur": 9},
    {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
     "args": {"correlation": 4}},
    {"ph": "X", "cat": "overhead", "name": "Unrecognized", "pid": -1, "tid": 0, "ts": 1, "dur": 1},
    {"ph": "X", "cat": "python_function", "name": "train.py(3): step", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
     "args": {"Python parent id": null, "Python id": 1}},
    {"ph": "X", "cat": "python_function", "name": "nn.Module: Net_0", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
     "args": {"Python parent id": 1, "Python id": 2, "Python module id": 0}},
    {"ph": "s", "id": 9, "pid": 1, "tid": 1, "ts": 2, "cat": "fwdbwd", "name": "fwdbwd"},
    {"ph": "f", "id": 9, "pid": 1, "tid": 8, "ts": 3, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"},
    {"ph": "f", "id": 4, "pid": 0, "tid": 7, "ts": 3, "cat": "ac2g", "name": "ac2g", "bp": "e"}
  ])"),
            R"(
annotation "ProfilerStep#1" 1/1 0+9000
driver "cuLaunchKernel" 1/1 1000+1000 correlation=4
overhead "Unrecognized" -1/0 1000+1000
python "train.py(3): step" 1/1 1000+1000 python=1
python "nn.Module: Net_0" 1/1 1000+1000 python=2 parent=1
annotation "step" 0/7 0+9000
link 9 from 1 2000
link 9 to 8 3000
)");
}

TEST(Kineto, ReadsWhatASynchronizingCallWaitedFor) {
  EXPECT_EQ(recorded(R"([
    {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 5, "dur": 9,
     "args": {"cuda_sync_kind": "Stream Sync", "stream": 7, "correlation": 15, "device": 0, "context": 1}},
    {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 20, "ts": 6, "dur": 0,
     "args": {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 16,
              "wait_on_cuda_event_id": 2, "stream": 20, "correlation": 17, "device": 0}},
    {"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "pid": 0, "tid": 0, "ts": 7, "dur": 1,
     "args": {"cuda_sync_kind": "Event Sync", "wait_on_stream": -1, "wait_on_cuda_event_record_corr_id": -1,
              "stream": -1, "correlation": 18, "device": 0}},
    {"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": -1, "ts": 8, "dur": 1,
     "args": {"cuda_sync_kind": "Context Sync", "stream": -1, "correlation": 19, "device": 0}}
  ])"),
            R"(
sync stream 0+9000 stream=7 correlation=15
sync stream_wait_event 1000+0 stream=20 correlation=17 waits_on=7 event=2 recorded_by=16
sync event 2000+1000 stream=- correlation=18
sync context 3000+1000 stream=- correlation=19
)");
}

TEST(Kineto, ReadsAllocatorEventsOfHostCudaAndHip) {
  EXPECT_EQ(recorded(R"([
    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": 1,
     "args": {"Total Reserved": 2097152, "Total Allocated": 512, "Bytes": 512, "Addr": 18446744073709551615,
              "Device Id": 0, "Device Type": 1}},
    {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": 2,
     "args": {"Device Type": 0, "Device Id": -1, "Bytes": -4}},
    {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": 3,
     "args": {"Device Type": 6, "Device Id": 2, "Bytes": 8}},
    {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace", "ts": 0}
  ])"),
            R"(
memory device=0 0 bytes=512 address=18446744073709551615 allocated=512 reserved=2097152
memory device=-1 1000 bytes=-4
memory device=2 2000 bytes=8
)");
}

TEST(Kineto, ReadsWhatACollectiveMoves) {
  EXPECT_EQ(recorded(R"([
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 20, "ts": 1, "dur": 2,
     "args": {"stream": 20, "correlation": 3, "Collective name": "_allgather_base", "In msg nelems": 10,
              "Out msg nelems": 20, "Group size": 2, "dtype": "Float", "Process Group Name": "0",
              "Process Group Ranks": "[0, 1]", "Seq": 4}}
  ])"),
            R"(
kernel "ncclDevKernel" 0/20 0+2000 correlation=3 _allgather_base 10->20 Float group=0/2 [0, 1]
)");
}

// PyTorch numbers the collectives of the group, and names the other end of a message.
TEST(Kineto, AMessageIsBetweenTwoRanksOfItsGroup) {
  EXPECT_EQ(recorded(R"({"distributedInfo": {"rank": 2, "world_size": 4}, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "pid": 0, "tid": 20, "ts": 1, "dur": 2,
     "args": {"stream": 20, "correlation": 3, "Collective name": "send", "In msg nelems": 10,
              "Out msg nelems": 10, "Group size": 4, "dtype": "Float", "Process Group Name": "0",
              "Process Group Ranks": "[0, 1, 2, 3]", "Rank": 1, "Dst Rank": 1, "Seq": 4}}
  ]})"),
            R"(
kernel "ncclDevKernel_SendRecv" 0/20 0+2000 correlation=3 send 10->10 Float group=0/2 [1, 2]
)");
}

TEST(Kineto, TakesTheSizeOfACopyFromItsCallOnRocm) {
  EXPECT_EQ(recorded(R"([
    {"ph": "X", "cat": "cuda_runtime", "name": "hipMemcpyWithStream", "pid": 1, "tid": 1, "ts": 1, "dur": 2,
     "args": {"stream": "0x0", "cid": 153, "correlation": 7, "size": "2560", "kind": "1"}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "CopyHostToDevice", "pid": 2, "tid": 0, "ts": 2, "dur": 3,
     "args": {"device": 2, "stream": 0, "correlation": 7, "kind": "HtoD"}}
  ])"),
            R"(
runtime "hipMemcpyWithStream" 1/1 0+2000 correlation=7
copy "CopyHostToDevice" 2/0 1000+3000 in bytes=2560 correlation=7
)");
}

TEST(Kineto, PairsBeginsWithEnds) {
  EXPECT_EQ(recorded(R"([
    {"ph": "M", "args": {"name": "conv1_weight"}, "pid": 3, "name": "process_name"},
    {"ph": "B", "pid": 3, "ts": 10, "name": "outer"},
    {"ph": "B", "pid": 3, "ts": 12, "name": "inner"},
    {"ph": "E", "pid": 3, "ts": 13},
    {"ph": "E", "pid": 3, "ts": 20},
    {"ph": "E", "pid": 3, "ts": 21},
    {"ph": "B", "pid": 3, "ts": 22, "name": "open"}, )"),
            R"(
op "inner" 3/0 2000+1000
op "outer" 3/0 0+10000
! the list of events is not closed: 1
! range ends without a begin, left out: 1 (at byte 273)
! range begins without an end, left out: 1 (at byte 310)
)");
}

TEST(Kineto, BeginsKeepTheirCategory) {
  EXPECT_EQ(recorded(R"([
    {"ph": "B", "cat": "user_annotation", "pid": 3, "tid": 1, "ts": 10, "name": "step"},
    {"ph": "B", "cat": "cuda_runtime", "pid": 3, "tid": 1, "ts": 11, "name": "cudaFree"},
    {"ph": "E", "pid": 3, "tid": 1, "ts": 12},
    {"ph": "E", "pid": 3, "tid": 1, "ts": 13}
  ])"),
            R"(
runtime "cudaFree" 3/1 1000+1000
annotation "step" 3/1 0+3000
)");
}

TEST(Kineto, NamesThreadsWhereverTheNameStands) {
  const Trace trace = read_text(R"x([
    {"name": "thread_name", "ph": "M", "ts": 1, "pid": 1, "tid": 2, "args": {"name": "thread 2 (python)"}},
    {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 2},
    {"ph": "X", "name": "b", "pid": "CPU functions", "tid": "main loop", "ts": 1, "dur": 2},
    {"name": "thread_name", "ph": "M", "ts": 1, "pid": 1, "tid": 3, "args": {"name": "never seen"}}
  ])x");
  ASSERT_EQ(trace.threads.size(), 2U);
  EXPECT_EQ(trace.threads[0].name, "thread 2 (python)");
  EXPECT_EQ(trace.threads[1].name, "main loop");
}

TEST(Kineto, ReadsWhatStandsAroundTheEventsInAnyOrder) {
  const std::string events =
      R"("traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2,
    "ts": 1.5, "dur": 2}])";
  const std::string rest =
      R"("deviceProperties": [{"id": 0, "name": "Tesla \"V100\"", "totalGlobalMem": 17179869184,
    "computeMajor": 7, "computeMinor": 0, "numSms": 80}],
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"ranks": [0, 1]}]},
    "baseTimeNanoseconds": 1000000, "displayTimeUnit": "ns", "with_stack": 1, "trace_id": "AB")";
  for (const std::string& text :
       {"{" + events + ", " + rest + "}", "{" + rest + ", " + events + "}"}) {
    const Trace trace = read_text(text, 64);
    EXPECT_EQ(trace.rank, 3);
    EXPECT_EQ(trace.world_size, 8);
    EXPECT_EQ(trace.origin_ns, 1001500);
    EXPECT_EQ(trace.tick_ns, 1);
    ASSERT_EQ(trace.properties.size(), 1U);
    EXPECT_EQ(trace.properties[0].name, "Tesla \"V100\"");
    EXPECT_EQ(trace.properties[0].memory_bytes, 17179869184);
    EXPECT_EQ(trace.properties[0].multiprocessors, 80);
    EXPECT_EQ(trace.metadata.at("trace_id"), "\"AB\"");
    EXPECT_EQ(trace.metadata.at("with_stack"), "1");
    EXPECT_TRUE(trace.notes.empty());
  }
}

TEST(Kineto, KeepsNanosecondsThatADoubleWouldLose) {
  const Trace trace = read_text(R"([
    {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1712195495520871.001, "dur": 0.001},
    {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 2, "ts": 1712195495520871.128, "dur": 1e3}
  ])");
  EXPECT_EQ(trace.origin_ns, 1712195495520871001);
  EXPECT_EQ(trace.hosts[1].start_ns, 127);
  EXPECT_EQ(trace.hosts[0].duration_ns, 1);
  EXPECT_EQ(trace.hosts[1].duration_ns, 1000000);
  EXPECT_EQ(trace.tick_ns, 1);
}

TEST(Kineto, SaysWhetherTimesAreWholeMicroseconds) {
  const auto tick = [](const char* time) {
    return read_text(
               std::string(
                   R"([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "dur": 3, "ts": )") +
               time + "}]")
        .tick_ns;
  };
  EXPECT_EQ(tick("12"), 1000);
  EXPECT_EQ(tick("12.0"), 1000);
  EXPECT_EQ(tick("12.25"), 1);
}

TEST(Kineto, KeepsTheLow32BitsOfEveryCorrelationId) {
  EXPECT_EQ(recorded(R"([
    {"ph": "X", "cat": "cuda_runtime", "name": "l", "pid": 1, "tid": 2, "ts": 1, "dur": 1,
     "args": {"correlation": 4294967301}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 2, "dur": 1, "args": {"correlation": 4294967301}}
  ])"),
            R"(
runtime "l" 1/2 0+1000 correlation=5
kernel "k" 0/7 1000+1000 correlation=5
)");
}

TEST(Kineto, CopiesBetweenTwoDevicesAreToldFromThoseOnOne) {
  EXPECT_EQ(recorded(R"x([
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7, "ts": 1, "dur": 2,
     "args": {"device": 0, "stream": 7, "bytes": 64, "fromDevice": 0, "toDevice": 1}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7, "ts": 4, "dur": 2,
     "args": {"device": 0, "stream": 7, "bytes": 64, "fromDevice": 0, "toDevice": 0}}
  ])x"),
            R"x(
copy "Memcpy DtoD (Device -> Device)" 0/7 0+2000 peer bytes=64
copy "Memcpy DtoD (Device -> Device)" 0/7 3000+2000 on_device bytes=64
)x");
}

TEST(Kineto, KnowsTheSpellingsOfCopies) {
  const std::pair<const char*, CopyDirection> cases[] = {
      {"Memcpy HtoD (Pageable -> Device)", CopyDirection::in},
      {"Memcpy DtoH (Device -> Pinned)", CopyDirection::out},
      {"Memcpy DtoD (Device -> Device)", CopyDirection::on_device},
      {"Memcpy PtoP (Device -> Device)", CopyDirection::peer},
      {"CopyDeviceToHost", CopyDirection::out},
      {"hipMemcpyHostToDevice", CopyDirection::in},
      {"Memcpy HtoH", CopyDirection::on_host},
      {"Memcpy M2D", CopyDirection::in},
      {"Memcpy D2M", CopyDirection::out},
      {"Memcpy HtoA (Pageable -> Array)", CopyDirection::in},
      {"Memcpy AtoH (Array -> Pageable)", CopyDirection::out},
      {"Memcpy AtoA (Array -> Array)", CopyDirection::on_device},
      {"Memcpy AtoD (Array -> Device)", CopyDirection::on_device},
      {"Memcpy DtoA (Device -> Array)", CopyDirection::on_device},
      {"hipMemcpyDeviceToHost", CopyDirection::out},
      {"hipMemcpyDeviceToDevice", CopyDirection::on_device},
      {"hipMemcpyHostToHost", CopyDirection::on_host},
      {"CopyPeerToPeer", CopyDirection::peer},
      {"Copy Host -> Device", CopyDirection::in},
      {"Copy Device -> Host", CopyDirection::out},
      {"Copy H2D", CopyDirection::in},
      {"Copy D2H", CopyDirection::out},
      {"Copy D2D", CopyDirection::on_device},
      {"Copy P2P", CopyDirection::peer},
      {"memory", CopyDirection::none},
  };
  for (const auto& [name, direction] : cases) EXPECT_EQ(copy_direction(name), direction) << name;
}

}  // namespace
}  // namespace foretrace
