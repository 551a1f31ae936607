#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "graph/recorder_time.h"
#include "infer/recording.h"
#include "support/tasks.h"

namespace foretrace {
namespace {

TEST(Infer, AKernelWaitsForItsLaunchAndForTheOneInFront) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  run.kernel(0, "A", 5, 6, 1).kernel(0, "B", 11, 4, 2);
  EXPECT_EQ(waits(run), R"(
launch_a -> A: launch 5us from start (measured)
launch_b -> B: launch 5us from start (measured)
)");
  EXPECT_EQ(replayed(run), R"(
thread 0 |llll...........|
stream 0 |.....AAAAAABBBB|
)");
}

// A -> B on two streams from one launch; only the graph's own structure says that B waits.
TEST(Infer, NodesOfAGraphWaitAsTheGraphSays) {
  Recording run;
  run.call(0, "cudaGraphLaunch", 0, 2, 1);
  run.kernel(0, "A", 5, 6, 1).kernel(1, "C", 5, 9, 1).kernel(1, "B", 14, 4, 1);
  std::uint64_t node = 100;
  for (DeviceRecord& record : run.trace().devices) record.graph_node = node++;
  run.trace().graph_edges = {{100, 102}, {100, 555}, {101, 102}};
  Inference inference = infer(run.trace());
  EXPECT_EQ(waits(inference.graph), R"(
cudaGraphLaunch -> A: launch 5us from start (measured)
cudaGraphLaunch -> C: launch 5us from start (measured)
cudaGraphLaunch -> B: launch 5us from start (measured)
A -> B: graph edge 3us (measured)
)");
  // The wait did not delay B, but it does when A takes longer.
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    if (inference.graph.name(TaskId{i}) == "A") inference.graph.task(TaskId{i}).duration = 12us;
  }
  EXPECT_EQ(simulate(inference.graph).length, 24us);
}

TEST(Infer, WithoutAnAllocatorWhatTheDriverGivesIsTheMemoryInUse) {
  Recording run;
  run.op(0, "make", 0, 4).op(0, "drop", 6, 4);
  run.memory(0, 1, 0x100, 512).memory(0, 7, 0x100, -512);
  run.trace().memory[0].action = MemoryAction::segment_alloc;
  run.trace().memory[1].action = MemoryAction::segment_free;
  EXPECT_EQ(infer(run.trace()).graph.allocations().size(), 1U);
  // If the trace has blocks as well, segments are requests of the allocator, not memory in use.
  run.memory(0, 2, 0x100, 64).memory(0, 8, 0x100, -64);
  const Graph graph = infer(run.trace()).graph;
  ASSERT_EQ(graph.allocations().size(), 1U);
  EXPECT_EQ(graph.allocations()[0].bytes, Bytes{64});
}

TEST(Infer, TimeOfNestedRecordsIsCountedOnce) {
  Recording run;
  run.op(0, "outer", 0, 10).op(0, "inner", 2, 4);
  EXPECT_EQ(replayed(run), R"(
thread 0 |ooiiiioooo|
)");
}

TEST(Infer, ASynchronizingCallIsItsTailAndAWait) {
  Recording run;
  run.call(0, "launch", 0, 2, 1).call(0, "cudaStreamSynchronize", 2, 15, 2);
  run.kernel(0, "A", 5, 10, 1);
  Inference inference = infer(run.trace());
  EXPECT_EQ(waits(inference.graph), R"(
A -> cudaStreamSynchronize: device sync (inferred)
launch -> A: launch 5us from start (measured)
)");
  EXPECT_EQ("\n" + to_ascii(inference.graph, simulate(inference.graph)), R"(
thread 0 |ll.............cc|
stream 0 |.....AAAAAAAAAA..|
)");
  // With a quicker kernel the call returns earlier, so it was a wait.
  inference.graph.task(TaskId{3}).duration = 4us;
  EXPECT_EQ("\n" + to_ascii(inference.graph, simulate(inference.graph)), R"(
thread 0 |ll.......cc|
stream 0 |.....AAAA..|
)");
}

TEST(Infer, ACopyFromPageableMemoryHoldsItsCall) {
  Recording run;
  run.call(0, "cudaMemcpyAsync", 0, 22, 1).op(0, "next", 22, 3);
  run.copy(0, CopyDirection::in, "Memcpy HtoD", 5, 15, 1);
  EXPECT_EQ(replayed(run), R"(
thread 0 |ccccc...............ccnnn|
stream 0 |.....MMMMMMMMMMMMMMM.....|
)");
}

TEST(Infer, ACopyFromPinnedMemoryDoesNot) {
  Recording run;
  run.call(0, "cudaMemcpyAsync", 0, 22, 1).op(0, "next", 22, 3);
  run.copy(0, CopyDirection::in, "Memcpy HtoD", 5, 15, 1);
  run.trace().devices[0].pinned_host = true;
  EXPECT_EQ(replayed(run), R"(
thread 0 |ccccccccccccccccccccccnnn|
stream 0 |.....MMMMMMMMMMMMMMM.....|
)");
}

TEST(Infer, AThreadThatStandsStillWhileAnotherWorksWaitsForIt) {
  Recording run;
  run.op(0, "forward", 0, 20).op(0, "update", 180, 10);
  run.op(1, "backward", 25, 150);
  Inference inference = infer(run.trace());
  EXPECT_EQ(waits(inference.graph), R"(
(between records) -> backward: thread hand-over (inferred)
backward -> (waits for thread): wait for thread (inferred)
)");
  EXPECT_EQ(inference.graph.unexplained().pinned_tasks, 0);
  EXPECT_EQ(simulate(inference.graph).length, 190us);
  // With half the backward pass, the update comes earlier by the same time.
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    if (inference.graph.name(TaskId{i}) == "backward") {
      inference.graph.task(TaskId{i}).duration = 75us;
    }
  }
  EXPECT_EQ(simulate(inference.graph).length, 115us);
}

TEST(Infer, ARecordedEventWaitIsMeasured) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "cudaEventRecord", 2, 1, 2);
  run.call(0, "cudaStreamWaitEvent", 3, 1, 3).call(0, "launch_b", 4, 2, 4);
  run.kernel(0, "A", 5, 20, 1).kernel(1, "B", 27, 4, 4);
  run.waits_for_event(1, 0, 3, 2);
  EXPECT_EQ(waits(run), R"(
launch_a -> A: launch 5us from start (measured)
launch_b -> B: launch 5us from start (measured)
A -> B: event wait 2us (measured)
)");
}

TEST(Infer, ALateStartIsExplainedByWhatFinishedJustBefore) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  run.kernel(0, "A", 5, 90, 1).kernel(1, "B", 98, 4, 2);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(waits(inference.graph), R"(
launch_a -> A: launch 5us from start (measured)
launch_b -> B: launch 5us from start (measured)
A -> B: event wait 3us (inferred)
)");
  EXPECT_EQ(inference.graph.unexplained().lag, 0us);
}

TEST(Infer, AKernelThatStartsWhileAFullDeviceEmptiesOverlapsItsTail) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  run.kernel(0, "A", 5, 200, 1).kernel(1, "B", 195, 20, 2);
  run.trace().devices[0].grid = 10'000;
  Inference inference = infer(run.trace());
  EXPECT_EQ(inference.graph.unexplained().lag, 0us);
  EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
  // At half its length, A has half the tail: it ends at 105, and B starts 5 us before.
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    if (inference.graph.name(TaskId{i}) == "A") inference.graph.task(TaskId{i}).duration = 100us;
  }
  EXPECT_EQ(simulate(inference.graph).length.count() / 1000, 120);
}

// One block of 384 threads with 168 registers each is all that a multiprocessor of an H100 holds.
TEST(Infer, RegistersAndSharedMemoryLimitHowManyBlocksFillADevice) {
  const auto fill_with = [](std::uint32_t registers, std::uint32_t shared) {
    Recording run;
    run.call(0, "launch", 10, 2, 1).kernel(0, "nvjet_gemm", 14, 3, 1);
    Trace& trace = run.trace();
    trace.properties = {
        {.ordinal = 0, .name = "H100", .multiprocessors = 132, .major = 9, .minor = 0}};
    trace.launches = {{.registers = registers, .dynamic_shared = shared}};
    trace.devices[0].grid = 132, trace.devices[0].block = 384, trace.devices[0].launch = 0;
    const Inference inference = infer(trace);
    return inference.graph.task(named(inference.graph, "nvjet_gemm")).fill;
  };
  EXPECT_FLOAT_EQ(fill_with(168, 213'000), 1);
  EXPECT_FLOAT_EQ(fill_with(168, 0), 1);
  EXPECT_FLOAT_EQ(fill_with(32, 213'000), 1);
  EXPECT_FLOAT_EQ(fill_with(32, 0), 0.75F);
  EXPECT_FLOAT_EQ(fill_with(0, 0), 0.75F);
}

TEST(Infer, AStagedCopyReturnsBeforeItsLastPieceArrives) {
  Recording run;
  run.call(0, "cudaMemcpyAsync", 0, 100, 1).op(0, "next", 100, 10);
  run.copy(0, CopyDirection::in, "Memcpy HtoD", 5, 99, 1);
  Inference inference = infer(run.trace());
  EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    Task& task = inference.graph.task(TaskId{i});
    if (task.kind == TaskKind::copy_in) task.duration = 50us;
  }
  // It ends at 55; the call returned with 4 % of it left.
  EXPECT_EQ(simulate(inference.graph).length.count() / 1000, 62);
}

TEST(Infer, TheDriversWorkInFrontOfALaunchIsWorkNotLatency) {
  Recording run;
  for (std::uint32_t i = 1; i <= 10; ++i) {
    const int time = static_cast<int>(i) * 100;
    run.call(0, "launch", time, 2, i).kernel(0, "k", time + 6, 10, i);
  }
  run.call(0, "launch_slow", 2000, 3000, 11).kernel(0, "late", 4990, 10, 11);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(inference.graph.unexplained().lag, 0us);
  EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
}

TEST(Infer, AWatchdogNeitherWaitsNorIsWaitedFor) {
  Recording run;
  run.op(0, "forward", 0, 20).op(0, "update", 400, 10);
  run.call(1, "cudaEventQuery", 25, 150, 1).call(1, "cudaEventQuery", 180, 200, 2);
  EXPECT_EQ(waits(run), R"(
start of the recording -> cudaEventQuery: recorded start 25us (inferred)
)");
}

TEST(Infer, TheWaitForTheBackwardPassComesInPiecesWhenItCallsBack) {
  constexpr std::string_view kBackward = "autograd::engine::evaluate_function: AccumulateGrad";
  Recording run;
  run.op(0, "forward", 0, 20).op(0, kBackward, 150, 10).op(0, "update", 300, 10);
  run.op(1, kBackward, 25, 120).op(1, kBackward, 145, 145);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(inference.graph.unexplained().pinned_tasks, 0);
  const std::string text = waits(inference.graph);
  EXPECT_NE(text.find("(between records) -> " + std::string(kBackward) + ": thread hand-over"),
            std::string::npos);
  std::size_t pieces = 0;
  for (std::size_t at = text.find("wait for thread"); at != std::string::npos;
       at = text.find("wait for thread", at + 1)) {
    ++pieces;
  }
  EXPECT_EQ(pieces, 2u);
}

TEST(Infer, ModulesAndLayersComeFromPythonFramesAndReachTheBackwardPass) {
  Recording run;
  run.host(0, HostKind::python, "nn.Module: Net_0", 0, 30);
  run.host(0, HostKind::python, "nn.Module: Linear_0", 2, 10).op(0, "aten::linear", 3, 5);
  run.call(0, "launch", 4, 1, 1);
  run.host(0, HostKind::python, "nn.Module: Linear_1", 14, 10).op(0, "aten::linear", 15, 5);
  run.call(0, "launch", 16, 1, 2);
  run.op(0, "autograd::engine::evaluate_function: AddmmBackward0", 40, 10);
  run.call(0, "launch", 42, 1, 3);
  run.trace().op_details.push_back({.sequence = 7});
  run.trace().hosts[5].details = 0;
  run.trace().hosts[7].details = 0;
  run.kernel(0, "a", 10, 2, 1).kernel(0, "b", 22, 2, 2).kernel(0, "b_grad", 48, 2, 3);
  const Inference inference = infer(run.trace());
  const Graph& graph = inference.graph;
  std::string seen;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel) continue;
    seen += std::string(graph.name(TaskId{i})) + ' ' + std::string(graph.names()[task.module]) +
            ' ' + std::to_string(task.layer) + '\n';
  }
  EXPECT_EQ(seen,
            "a Net_0/Linear_0 0\n"
            "b Net_0/Linear_1 1\n"
            "b_grad Net_0/Linear_1 1\n");
}

TEST(Infer, ALateStartWithoutACauseIsKeptAndCounted) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  run.kernel(0, "A", 5, 5, 1).kernel(0, "B", 410, 4, 2);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(inference.graph.unexplained().lag, 399us);
  EXPECT_EQ(inference.graph.unexplained().pinned_tasks, 0);
  EXPECT_EQ(simulate(inference.graph).length, 414us);
}

TEST(Infer, AnActivityWithoutALaunchIsPinnedOnlyAtTheHeadOfItsStream) {
  Recording run;
  run.op(0, "work", 0, 50);
  run.kernel(0, "A", 5, 5, 1).kernel(0, "B", 11, 4, 2).kernel(0, "C", 16, 4, 3);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(inference.graph.unexplained().pinned_tasks, 1);
  EXPECT_EQ(inference.notes.count("device activities without a record of their launch"), 3);
}

TEST(Infer, LaunchesWhoseKernelsWereDroppedAreAWarning) {
  Recording run;
  run.call(0, "cudaLaunchKernel", 0, 2, 1).call(0, "cudaLaunchKernel", 2, 2, 2);
  run.kernel(0, "B", 10, 4, 2);
  constexpr auto kDropped =
      "launches without a kernel: device records were dropped, so steps may look shorter than they "
      "were";
  EXPECT_EQ(infer(run.trace()).notes.count(kDropped), 1);
  run.kernel(0, "A", 5, 5, 1);
  EXPECT_EQ(infer(run.trace()).notes.count(kDropped), 0);
}

TEST(Infer, WithoutDeviceActivityTheTimesAreSaidToBeThoseOfTheHost) {
  Recording run;
  run.op(0, "work", 0, 50).call(0, "cudaLaunchKernel", 0, 2, 1);
  EXPECT_EQ(infer(run.trace())
                .notes.count("launches, but no device activity: times are those of the host alone"),
            1);
}

// Host work before and after the device work counts.
TEST(Infer, ASingleStepReachesFromItsBeginOnTheHostToItsEndOnTheDevice) {
  const auto step_time = [](Recording& run) {
    const Inference found = infer(run.trace());
    return step_times(found.graph, found.recorded).step_time;
  };
  Recording idle;
  idle.step(1, 0, 100).call(0, "cudaLaunchKernel", 80, 2, 1).kernel(0, "A", 83, 10, 1);
  EXPECT_EQ(step_time(idle), 100us);
  Recording busy;
  busy.step(1, 0, 100).call(0, "cudaLaunchKernel", 5, 2, 1).kernel(0, "A", 8, 195, 1);
  EXPECT_EQ(step_time(busy), 203us);
}

TEST(Infer, OneLaunchMayOwnManyKernels) {
  Recording run;
  run.call(0, "cudaGraphLaunch", 0, 5, 7);
  for (int i = 0; i < 40; ++i) run.kernel(0, "k", 10 + 3 * i, 3, 7);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(inference.graph.unexplained().lag, 0us);
  EXPECT_EQ(simulate(inference.graph).length, 130us);
}

TEST(Infer, KernelsOfAStreamMayOverlap) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  run.kernel(0, "A", 5, 10, 1).kernel(0, "B", 13, 10, 2);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
}

TEST(Infer, DeviceTimesAreShiftedBehindTheirLaunches) {
  Recording run;
  run.call(0, "launch_a", 10, 2, 1).call(0, "launch_b", 12, 2, 2);
  run.kernel(0, "A", 0, 5, 1).kernel(0, "B", 5, 5, 2);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(inference.notes.count("device times shifted to the host's clock"), 1);
}

TEST(Infer, DeviceTimesAreShiftedInFrontOfTheReturnsThatWaitedForThem) {
  Recording run;  // The device's clock is 40us behind.
  run.call(0, "cudaLaunchKernel", 0, 5, 1).kernel(0, "A", 46, 100, 1);
  run.call(0, "cudaDeviceSynchronize", 5, 105, 2);
  run.call(0, "cudaLaunchKernel", 120, 5, 3).kernel(0, "B", 166, 100, 3);
  run.call(0, "cudaDeviceSynchronize", 125, 103, 4);
  EXPECT_EQ(waits(run), R"(
A -> cudaDeviceSynchronize: device sync (inferred)
B -> cudaDeviceSynchronize: device sync (inferred)
cudaLaunchKernel -> A: launch 8us from start (measured)
cudaLaunchKernel -> B: launch 8us from start (measured)
)");
}

TEST(Infer, TheFirstActivityMayWaitForWorkFromBeforeTheRecording) {
  Recording run;
  for (int i = 0; i < 8; ++i) {
    run.call(0, "cudaLaunchKernel", 5 * i, 5, 1 + i).kernel(0, "A", 400 + 10 * i, 10, 1 + i);
  }
  const Inference inference = infer(run.trace());
  EXPECT_EQ(inference.graph.unexplained().lag, 0us);
  EXPECT_EQ(inference.graph.unexplained().pinned_tasks, 1);
}

TEST(Infer, AWorkerStartedLongAfterTheWaitBeganWasStartedByAnother) {
  Recording run;
  run.step(1, 0, 1000);
  run.op(0, "forward", 0, 100).op(0, "loss", 900, 10);
  run.op(1, "backward on device 0", 110, 300);
  run.op(2, "backward on device 1", 420, 400);
  EXPECT_EQ(waits(run), R"(
ProfilerStep#1 -> backward on device 0: thread hand-over (inferred)
backward on device 0 -> (waits for thread): wait for thread (inferred)
backward on device 0 -> backward on device 1: thread hand-over 10us (inferred)
backward on device 1 -> (waits for thread): wait for thread (inferred)
)");
}

// As profilers before PyTorch 1.9 record it: nodes of the autograd graph without the engine's
// calls.
TEST(Infer, NodesOfTheAutogradGraphAreTheBackwardPass) {
  Recording run;
  run.op(0, "aten::relu", 0, 10).op(0, "ReluBackward1", 20, 10);
  run.op(0, "torch::autograd::AccumulateGrad", 40, 10).op(0, "aten::_softmax_backward_data", 60, 5);
  run.call(0, "launch", 2, 1, 1).call(0, "launch", 22, 1, 2).call(0, "launch", 42, 1, 3);
  run.kernel(0, "a", 10, 2, 1).kernel(0, "b", 30, 2, 2).kernel(0, "c", 50, 2, 3);
  const Inference inference = infer(run.trace());
  std::string phases;
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    const Task& task = inference.graph.task(TaskId{i});
    if (task.kind == TaskKind::kernel) phases += std::string(to_string(task.phase)) + ' ';
  }
  EXPECT_EQ(phases, "forward backward backward ");
}

TEST(Infer, StepsComeFromMarkersAndKernelsBelongToTheStepThatLaunchedThem) {
  Recording run;
  run.step(3, 0, 10).step(4, 10, 10);
  run.call(0, "launch_a", 1, 2, 1).call(0, "launch_b", 11, 2, 2);
  run.kernel(0, "A", 6, 30, 1).kernel(0, "B", 36, 30, 2);
  const Inference inference = infer(run.trace());
  ASSERT_EQ(inference.graph.steps().size(), 2u);
  EXPECT_EQ(inference.graph.steps()[1].name, "ProfilerStep#4");
  // The first step begins on the host at 0, because the device is idle; the second one at 36.
  EXPECT_EQ(step_times(inference.graph, inference.recorded).each,
            (std::vector<Nanoseconds>{36us, 30us}));
}

TEST(Infer, RangesThatTheProgramNumberedAreSteps) {
  Recording run;
  for (int i = 0; i < 4; ++i) {
    const int start = 100 * i;
    run.host(0, HostKind::annotation, "train_step " + std::to_string(i), start, 90);
    // Two ranges to a step: they are not steps themselves, although they are numbered.
    run.host(0, HostKind::annotation, "batch " + std::to_string(2 * i), start + 1, 40);
    run.host(0, HostKind::annotation, "batch " + std::to_string(2 * i + 1), start + 42, 40);
    run.call(0, "launch", start + 10, 2, static_cast<std::uint32_t>(i + 1));
    run.kernel(0, "A", start + 20, 30, static_cast<std::uint32_t>(i + 1));
  }
  const Inference inference = infer(run.trace());
  EXPECT_EQ(step_times(inference.graph, inference.recorded).each.size(), 4U);
  EXPECT_EQ(inference.assumptions.at(0), "Steps are found by ranges such as \"train_step 0\".");
}

TEST(Infer, StepsWithoutMarkersAreFoundByRepetition) {
  Recording run;
  std::uint32_t id = 0;
  for (int step = 0; step < 5; ++step) {
    for (const char* name : {"a", "b", "b", "adam"}) {
      ++id;
      const int time = step * 100 + static_cast<int>(id % 4) * 10;
      run.call(0, "launch", time, 2, id).kernel(0, name, time + 5, 5, id);
    }
  }
  const Inference inference = infer(run.trace());
  EXPECT_GE(inference.graph.steps().size(), 4u);
  EXPECT_EQ(inference.assumptions.size(), 1u);
}

// Each step is a beginning, 30 equal layers and an end: the layers repeat, but are not steps.
TEST(Infer, AlikeLayersAreNoSteps) {
  Recording run;
  std::uint32_t correlation = 0;
  const auto launch = [&](std::string_view name) {
    const int start = static_cast<int>(10 * correlation++);
    run.call(0, "launch", start, 2, correlation).kernel(0, name, start + 5, 4, correlation);
  };
  constexpr std::string_view kLayer[] = {"norm", "qkv", "softmax", "project", "up", "gelu", "down"};
  for (int step = 0; step < 5; ++step) {
    launch("embed");
    for (int layer = 0; layer < 30; ++layer) {
      for (const std::string_view name : kLayer) launch(name);
    }
    launch("head");
    launch("loss");
  }
  const Inference inference = infer(run.trace());
  EXPECT_EQ(
      inference.assumptions.at(0),
      "Steps are found by the repetition of 213 device activities; the trace has no step markers.");
}

// The same recording with one more activity in the third step, and one less in the fourth.
TEST(Infer, StepsThatDifferHereAndThereAreFoundByRepetition) {
  Recording run;
  std::uint32_t correlation = 0;
  const auto launch = [&](std::string_view name) {
    const int start = static_cast<int>(10 * correlation++) + (name == "embed" ? 5 : 0);
    run.call(0, "launch", start, 2, correlation).kernel(0, name, start + 5, 4, correlation);
  };
  constexpr std::string_view kLayer[] = {"norm", "qkv", "softmax", "project", "up", "gelu", "down"};
  for (int step = 0; step < 6; ++step) {
    launch("embed");
    for (int layer = 0; layer < 30; ++layer) {
      for (const std::string_view name : kLayer) {
        if (step == 2 && layer == 17 && name == "up") launch("copy");
        if (step != 3 || layer != 4 || name != "gelu") launch(name);
      }
    }
    launch("head");
    launch("loss");
  }
  const Inference inference = infer(run.trace());
  ASSERT_EQ(inference.graph.steps().size(), 5U);  // There is no pause before the first step.
  std::vector<int> counts(5, 0);
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    const Task& task = inference.graph.task(TaskId{i});
    if (task.kind == TaskKind::kernel && task.step >= 0)
      ++counts[static_cast<std::size_t>(task.step)];
  }
  EXPECT_EQ(counts, (std::vector<int>{213, 214, 212, 213, 213}));
}

TEST(Infer, PhasesComeFromWhatSurroundsACall) {
  Recording run;
  run.op(0, "aten::mm", 0, 4).call(0, "launch", 1, 1, 1);
  run.op(0, "Optimizer.step#Adam.step", 10, 10).op(0, "aten::add_", 11, 5);
  run.call(0, "launch", 12, 1, 2);
  run.op(0, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 30, 10);
  run.kernel(0, "A", 6, 2, 1).kernel(0, "B", 17, 2, 2);
  const Inference inference = infer(run.trace());
  Phase a{}, b{};
  TaskKind loading{};
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    const Task& task = inference.graph.task(TaskId{i});
    const std::string_view name = inference.graph.name(TaskId{i});
    if (name == "A") a = task.phase;
    if (name == "B") b = task.phase;
    if (name.substr(0, 9) == "enumerate") loading = task.kind;
  }
  EXPECT_EQ(a, Phase::forward);
  EXPECT_EQ(b, Phase::update);
  EXPECT_EQ(loading, TaskKind::input);
}

// The range begins in the update, but what follows it does not belong to the update.
TEST(Infer, ARangeThatCrossesOthersIsAroundNothing) {
  for (const bool nests : {true, false}) {
    Recording run;
    run.op(0, "Optimizer.step#Adam.step", 0, 10);
    run.host(0, HostKind::annotation, "saves", 5, 45);
    run.trace().hosts.back().nests = nests;
    run.op(0, "aten::mm", 20, 4).call(0, "launch", 21, 1, 1).kernel(0, "A", 26, 2, 1);
    const Inference inference = infer(run.trace());
    for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
      if (inference.graph.name(TaskId{i}) != "A") continue;
      EXPECT_EQ(inference.graph.task(TaskId{i}).phase, nests ? Phase::update : Phase::forward);
    }
  }
}

TEST(Infer, FlopsComeFromTheShapesOfTheOpAndGoToItsLongestKernel) {
  Recording run;
  run.op(0, "aten::mm", 0, 10).call(0, "launch", 1, 1, 1).call(0, "launch", 3, 1, 2);
  run.op(0, "aten::convolution", 20, 10).op(0, "aten::cudnn_convolution", 21, 8);
  run.call(0, "launch", 22, 1, 3);
  Trace& trace = run.trace();
  trace.op_details.push_back({.shapes = trace.names.intern("[[4, 8], [8, 16]]")});
  trace.op_details.push_back(
      {.shapes = trace.names.intern("[[2, 3, 8, 8], [5, 3, 3, 3], []]"),
       .values = trace.names.intern(
           R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])")});
  trace.hosts[0].details = 0;
  trace.hosts[3].details = 1;
  run.kernel(0, "layout", 6, 2, 1).kernel(0, "gemm", 9, 5, 2).kernel(0, "conv", 28, 5, 3);
  const Graph graph = infer(trace).graph;
  std::string seen;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.task(TaskId{i}).kind != TaskKind::kernel) continue;
    seen += std::string(graph.name(TaskId{i})) + ' ' + to_text(graph.task(TaskId{i}).flops) + '\n';
  }
  // 2 * 4 * 8 * 16; 2 * (5 * 3 * 3 * 3) for each of 2 * 4 * 4 places.
  EXPECT_EQ(seen, "layout 0\ngemm 1024\nconv 8640\n");
}

TEST(Infer, EveryLaneIsOfTheRankThatWasRecorded) {
  Recording run;
  run.call(0, "launch", 0, 10, 1).kernel(0, "k", 12, 10, 1);
  run.trace().rank = 3;
  const Inference inference = infer(run.trace());
  for (std::uint32_t i = 0; i < inference.graph.lane_count(); ++i) {
    EXPECT_EQ(inference.graph.lane(LaneId{i}).rank, 3) << inference.graph.lane(LaneId{i}).name;
  }
  EXPECT_EQ(breakdown(inference.graph, inference.recorded).idle, 2us);
}

TEST(Infer, ActivitiesOfTheSameTimeDoNotWaitForEachOther) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2).call(0, "launch_c", 4, 2, 3);
  run.kernel(0, "A", 900, 0, 1).kernel(1, "B", 900, 0, 2).kernel(2, "C", 900, 0, 3);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(simulate(inference.graph).length, 900us);
}

TEST(Infer, AllocationsTieMemoryToTheTasksAtTheTime) {
  Recording run;
  run.op(0, "make", 0, 10).op(0, "use", 10, 10).op(0, "drop", 20, 10);
  run.memory(0, 5, 0x10, 1000).memory(0, 25, 0x10, -1000).memory(0, 12, 0x20, 500);
  const Inference inference = infer(run.trace());
  const std::vector<Allocation>& allocations = inference.graph.allocations();
  ASSERT_EQ(allocations.size(), 2u);
  EXPECT_EQ(inference.graph.name(allocations[0].made_by), "make");
  EXPECT_EQ(inference.graph.name(allocations[0].freed_by), "drop");
  EXPECT_EQ(allocations[1].freed_by, kNoTask);
}

TEST(Infer, ATraceWithNothingInItIsAnError) {
  Trace empty;
  EXPECT_THROW(infer(empty), TraceError);
}

// Without ops, the autograd thread shows only its launches. It is idle while the forward pass runs,
// so faster kernels make the whole step faster.
TEST(Infer, ThreadThatOnlyLaunchesIsStartedAndAwaited) {
  Recording run;
  for (int step = 0; step < 4; ++step) {
    const int at = 1000 * step;
    const auto id = static_cast<std::uint32_t>(10 * step);
    run.step(step, at, 1000);
    run.call(0, "cudaLaunchKernel", at + 10, 10, id + 1).kernel(0, "forward", at + 30, 200, id + 1);
    run.call(1, "cudaLaunchKernel", at + 100, 10, id + 2).kernel(0, "grad", at + 230, 300, id + 2);
    run.call(1, "cudaLaunchKernel", at + 400, 10, id + 3).kernel(0, "grad", at + 530, 300, id + 3);
    run.call(0, "cudaDeviceSynchronize", at + 450, 400, id + 4);
  }
  const Inference inference = infer(run.trace());
  const std::string found = waits(inference.graph);
  EXPECT_NE(found.find("thread hand-over"), std::string::npos) << found;
  EXPECT_NE(found.find("wait for thread"), std::string::npos) << found;
}

Recording nested_ops(int count, int before, int after) {
  Recording run;
  run.call(0, "cudaLaunchKernel", 0, 5, 1).kernel(0, "k", 10, 10, 1);
  for (int i = 0; i < count; ++i) {
    const int at = 100 + 100 * i;
    run.op(0, "aten::t", at, before + 10 + after).op(0, "aten::transpose", at + before, 10);
  }
  return run;
}

TEST(Infer, CostOfARecordIsMeasuredOnNestedOps) {
  const auto per_record = [](Recording recording) {
    return infer(recording.trace()).graph.unexplained().per_record;
  };
  EXPECT_EQ(per_record(nested_ops(120, 2, 1)), 3us);
  EXPECT_EQ(per_record(nested_ops(99, 2, 1)), 0us) << "too few";
  EXPECT_EQ(per_record(nested_ops(120, 6, 2)), 0us) << "more than a recorder takes";
  Recording simulated = nested_ops(120, 2, 1);
  simulated.trace().metadata["synthetic"] = "true";
  EXPECT_EQ(per_record(std::move(simulated)), 0us) << "nobody recorded it";
}

// The start of the only kernel is the step; the host works through all of it.
TEST(Infer, HostWorkWithARecorderOfUnknownCostIsAShortcoming) {
  const auto found = [](Recording recording, const char* format) {
    recording.trace().format = format;
    const Inference inference = infer(recording.trace());
    for (const Shortcoming& lack : inference.graph.unexplained().shortcomings) {
      if (lack.name == kRecorderReason) return lack.share;
    }
    return 0.0;
  };
  EXPECT_GT(found(nested_ops(50, 2, 1), "collect"), 0.9);
  EXPECT_GT(found(nested_ops(50, 2, 1), "nsys"), 0.9);
  EXPECT_EQ(found(nested_ops(120, 2, 1), "collect"), 0) << "the cost is known";
  EXPECT_EQ(found(nested_ops(50, 2, 1), "chakra"), 0);
  Recording on_device;
  on_device.call(0, "cudaLaunchKernel", 0, 5, 1).kernel(0, "k", 10, 90, 1);
  EXPECT_EQ(found(std::move(on_device), "collect"), 0);
}

}  // namespace
}  // namespace foretrace
