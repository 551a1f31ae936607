// The waits of host calls, and the cost of launches.

#include <gtest/gtest.h>

#include "foretrace/timeline.h"
#include "infer/recording.h"

namespace foretrace {
namespace {

TEST(Calls, AThreadWaitsForTheStreamThatItWorksOn) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(1, "launch_b", 2, 2, 2);
  run.call(0, "cudaStreamSynchronize", 4, 13, 3);
  run.kernel(0, "A", 5, 5, 1).kernel(1, "B", 6, 9, 2);
  EXPECT_NE(waits(run).find("A -> cudaStreamSynchronize: device sync (inferred)"),
            std::string::npos)
      << waits(run);
  EXPECT_EQ(waits(run).find("B -> cudaStreamSynchronize"), std::string::npos) << waits(run);
}

TEST(Calls, WhatTheProfilerItselfTakesIsNoWorkOfTheHost) {
  Recording run;
  run.op(0, "work", 0, 10).host(0, HostKind::overhead, "buffer request", 12, 5);
  run.op(0, "more", 20, 5);
  const Graph graph = infer(run.trace()).graph;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i)
    EXPECT_NE(graph.name(TaskId{i}), "buffer request");
}

// If two calls begin together, their common time belongs to the inner one, whatever their order.
TEST(Calls, TheLongerOfTwoThatBeginTogetherIsTheOuterOne) {
  Recording run;
  run.op(0, "inner", 0, 4).op(0, "outer", 0, 10);
  EXPECT_EQ(replayed(run), R"(
thread 0 |iiiioooooo|
)");
}

// Eight of ten launches take 4us to reach the idle device. Q waits for P, so only the typical
// launch delay is known for it.
TEST(Calls, ALaunchThatDidNotBindTakesAsLongAsMostDo) {
  Recording run;
  std::uint32_t id = 0;
  for (int i = 0; i < 10; ++i) {
    ++id;
    run.call(0, "launch", 100 * i, 2, id).kernel(0, "k", 100 * i + (i % 5 == 0 ? 9 : 4), 10, id);
  }
  run.call(0, "launch_p", 1000, 1, 50).kernel(0, "P", 1004, 100, 50);
  run.call(0, "launch_q", 1001, 1, 51).kernel(0, "Q", 1104, 100, 51);
  EXPECT_NE(waits(run).find("launch_q -> Q: launch 4us from start (measured)"), std::string::npos)
      << waits(run);
}

void set_duration(Graph& graph, std::string_view name, Nanoseconds duration) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.name(TaskId{i}) == name) graph.task(TaskId{i}).duration = duration;
  }
}

/// The length of the replay if K takes `kernel`. K was recorded with 100us, before a copy that
/// starts 40us after it.
Nanoseconds with_kernel(Recording& run, Nanoseconds kernel) {
  Inference inference = infer(run.trace());
  EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
  set_duration(inference.graph, "K", kernel);
  return simulate(inference.graph).length;
}

// The copy starts so late after K that K alone does not explain it: the host staged it. But the
// host did not stage all the time that K ran.
TEST(Calls, ACopyOfPageableMemoryWaitsForWhatIsInFrontAndStagesThen) {
  Recording out;
  out.call(0, "launch_k", 0, 2, 1).call(0, "cudaMemcpyAsync", 2, 158, 2);
  out.kernel(0, "K", 5, 100, 1).copy(0, CopyDirection::out, "Memcpy DtoH", 145, 10, 2);
  EXPECT_EQ(with_kernel(out, 10us), 70us);
  // For a copy to the device, the call returns once the last piece is staged.
  Recording in;
  in.call(0, "launch_k", 0, 2, 1).call(0, "cudaMemcpyAsync", 2, 143, 2);
  in.kernel(0, "K", 5, 100, 1).copy(0, CopyDirection::in, "Memcpy HtoD", 145, 10, 2);
  EXPECT_EQ(with_kernel(in, 10us), 65us);
}

// K was done before the call began, so all of the time before the copy is the host's.
TEST(Calls, ACopyWithNothingInFrontIsStagedFromTheBegin) {
  Recording run;
  run.call(0, "launch_k", 0, 2, 1).call(0, "cudaMemcpyAsync", 110, 50, 2);
  run.kernel(0, "K", 5, 100, 1).copy(0, CopyDirection::out, "Memcpy DtoH", 145, 10, 2);
  EXPECT_EQ(with_kernel(run, 10us), 160us);
}

// The host takes no part in copies of pinned memory: the time before one is the driver's own work.
TEST(Calls, ACopyOfPinnedMemoryDoesNotMakeItsCallWaitForWhatIsInFront) {
  Recording run;
  run.call(0, "launch_k", 0, 2, 1).call(0, "cudaMemcpyAsync", 2, 144, 2);
  run.kernel(0, "K", 5, 100, 1).copy(0, CopyDirection::out, "Memcpy DtoH", 145, 10, 2);
  run.trace().devices.back().pinned_host = true;
  EXPECT_EQ(with_kernel(run, 10us), 155us);
}

// Level Zero, Unified Runtime, and a device of a kind that only its verb shows.
TEST(Calls, WaitsAreKnownByTheirNamesWhateverTheDevice) {
  for (const std::string name :
       {"zeEventHostSynchronize", "zeCommandQueueSynchronize", "zeCommandListHostSynchronize",
        "urQueueFinish", "urEventWait", "aclrtSynchronizeStream", "npuSynchronizeAll"}) {
    Recording run;
    run.call(0, "launch_k", 0, 2, 1).call(0, name, 4, 97, 2).kernel(0, "K", 5, 95, 1);
    EXPECT_NE(waits(run).find("K -> " + name + ": device sync (inferred)"), std::string::npos)
        << name << waits(run);
  }
}

/// Three times a call that returns `late` after the work launched before it.
Recording returning(std::string_view name, HostKind kind, int late) {
  Recording run;
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t id = 2 * static_cast<std::uint32_t>(i) + 1;
    run.call(0, "launch_k", 1000 * i, 2, id).kernel(0, "K", 1000 * i + 5, 500, id);
    run.host(0, kind, name, 1000 * i + 10, 495 + late, id + 1);
  }
  return run;
}

TEST(Calls, ACallThatAgainAndAgainReturnsBehindTheLastWorkWaits) {
  Recording waiting = returning("finishAll", HostKind::runtime, 4);
  EXPECT_NE(waits(waiting).find("K -> finishAll: device sync (inferred)"), std::string::npos)
      << waits(waiting);
  // It is late, or it is work of the program's own.
  Recording late = returning("finishAll", HostKind::runtime, 200);
  EXPECT_EQ(waits(late).find("K -> finishAll"), std::string::npos);
  Recording op = returning("finishAll", HostKind::op, 4);
  EXPECT_EQ(waits(op).find("K -> finishAll"), std::string::npos);
}

// All work was done before the wait, so it is for work that is not recorded, which no change of
// kernels or of the host makes shorter.
TEST(Calls, AWaitForNothingIsUnknownDeviceTime) {
  Recording run;
  run.call(0, "launch_k", 0, 2, 1).kernel(0, "K", 5, 10, 1);
  run.call(0, "cudaStreamSynchronize", 100, 800, 2).op(0, "work", 900, 100);
  const Inference inference = infer(run.trace());
  const Breakdown parts = breakdown(inference.graph, inference.recorded);
  EXPECT_EQ(parts.unknown, 800us);
  EXPECT_EQ(parts.host, 190us);
  const std::vector<Shortcoming>& lacks = inference.graph.unexplained().shortcomings;
  ASSERT_EQ(lacks.size(), 1U);
  EXPECT_EQ(lacks[0].name, "unknown_device_time");
  EXPECT_TRUE(lacks[0].is_fatal);
}

// The thread's own stream was done long before, but another one is done when the wait returns.
TEST(Calls, AWaitThatReturnsBehindAnotherStreamIsForThat) {
  Recording run;
  run.call(0, "launch_k", 0, 2, 1).call(1, "launch_m", 0, 2, 2);
  run.kernel(0, "K", 5, 10, 1).kernel(1, "M", 5, 890, 2);
  run.call(0, "cudaStreamSynchronize", 100, 800, 3);
  EXPECT_NE(waits(run).find("M -> cudaStreamSynchronize: device sync (inferred)"),
            std::string::npos)
      << waits(run);
  EXPECT_TRUE(infer(run.trace()).graph.unexplained().shortcomings.empty());
}

// A call that frees memory takes as long as the driver needs; and a short wait is only a call.
TEST(Calls, FreesAndShortWaitsAreNoUnknownDeviceTime) {
  Recording run;
  run.call(0, "launch_k", 0, 2, 1).kernel(0, "K", 5, 10, 1);
  run.call(0, "cudaFree", 100, 800, 2).call(0, "cudaStreamSynchronize", 900, 100, 3);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(breakdown(inference.graph, inference.recorded).unknown, 0ns);
  EXPECT_TRUE(inference.graph.unexplained().shortcomings.empty());
}

// The record names a stream that has no work (Nsight writes device 0 into rows of any device).
TEST(Calls, ARecordedWaitOnAStreamWithoutWorkFallsBackToOtherEvidence) {
  Recording run;
  run.call(0, "launch_k", 0, 2, 1).call(0, "cudaStreamSynchronize", 4, 97, 2);
  run.kernel(0, "K", 5, 95, 1);
  run.trace().streams.push_back({.device = 1, .id = 0});
  run.trace().syncs.push_back({.correlation = 2, .stream = 1, .kind = SyncKind::stream});
  EXPECT_NE(waits(run).find("K -> cudaStreamSynchronize: device sync (inferred)"),
            std::string::npos)
      << waits(run);
}

// Nothing on its own device explains when B starts: it got the output of the other device.
TEST(Waits, WorkIsHandedFromOneDeviceOfAProcessToTheNext) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  run.kernel(0, "A", 5, 400, 1).kernel(1, "B", 407, 400, 2);
  run.trace().streams[1].device = 1;
  EXPECT_NE(waits(run).find("A -> B: event wait 2us (inferred)"), std::string::npos) << waits(run);
  // It starts long after the other is done, so that is not the cause.
  Recording late;
  late.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  late.kernel(0, "A", 5, 400, 1).kernel(1, "B", 465, 400, 2);
  late.trace().streams[1].device = 1;
  EXPECT_EQ(waits(late).find("A -> B"), std::string::npos) << waits(late);
}

std::vector<std::string> host_lanes(const Graph& graph) {
  std::vector<std::string> lanes;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    if (graph.lane(LaneId{i}).kind == LaneKind::host_thread)
      lanes.push_back(graph.lane(LaneId{i}).name);
  }
  return lanes;
}

// NCCL's watchdog polls every now and then. Nothing waits for it, so a recording in which it runs
// last is not longer than the work it watches.
TEST(Threads, OneThatOnlyWatchesIsLeftOut) {
  Recording run;
  run.call(0, "launch_k", 0, 2, 1).kernel(0, "K", 5, 10, 1);
  run.call(1, "cudaEventQuery", 1, 1, 2).call(1, "cudaThreadExchangeStreamCaptureMode", 50, 1, 3);
  run.call(1, "cudaEventQuery", 100, 1, 4);
  run.host(2, HostKind::python, "<built-in method sleep>", 0, 300);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(host_lanes(inference.graph), std::vector<std::string>{"thread 0"});
  EXPECT_EQ(inference.recorded.length, 15us);
  EXPECT_EQ(inference.graph.unexplained().pinned_tasks, 0);
  EXPECT_EQ(inference.notes.all().size(), 1U);
}

// The thread works every now and then, and others may wait for it; but its waiting for something to
// do is not work.
TEST(Threads, AHelperIsIdleBetweenItsRecords) {
  Recording run;
  run.call(0, "launch_k", 0, 2, 1).op(0, "work", 2, 100).kernel(0, "K", 5, 10, 1);
  run.op(1, "help", 0, 5).op(1, "help", 60, 5);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
  Nanoseconds work{0};
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    const TaskId task{i};
    if (inference.graph.lane(inference.graph.lane_of(task)).name == "thread 1")
      work += inference.graph.task(task).duration;
  }
  EXPECT_EQ(work, 10us);
}

// In a timeline without devices, only hosts are known.
TEST(Threads, WithoutADeviceTimeBetweenRecordsStaysWork) {
  Recording run;
  run.step(1, 0, 100).op(0, "work", 0, 100).op(1, "send", 0, 5).op(1, "send", 60, 5);
  const Inference inference = infer(run.trace());
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i)
    EXPECT_EQ(inference.graph.task(TaskId{i}).gap, 0ns);
}

// If no thread launches device work, nothing shows which thread is the helper.
TEST(Threads, WhereNoneIsSeenToWorkAllStay) {
  Recording run;
  run.host(0, HostKind::python, "train", 0, 100).host(1, HostKind::python, "sleep", 0, 300);
  EXPECT_EQ(host_lanes(infer(run.trace()).graph).size(), 2U);
}

}  // namespace
}  // namespace foretrace
