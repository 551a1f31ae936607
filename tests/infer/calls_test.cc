// The waits of host calls, and the cost of launches.

#include <gtest/gtest.h>

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
