// The waits of calls: for events, for the whole device, for a place in the launch queue.

#include <gtest/gtest.h>

#include <algorithm>

#include "infer/recording.h"
#include "trace/stream_flags.h"

namespace foretrace {
namespace {

TEST(Infer, ACallThatWaitsForAnEventWaitsForWhatWasLaunchedBeforeIt) {
  Recording run;
  run.call(0, "cudaLaunchKernel", 0, 5, 1).kernel(0, "A", 6, 100, 1);
  run.call(0, "cudaEventRecord", 5, 2, 2);
  run.call(0, "cudaLaunchKernel", 7, 5, 3).kernel(0, "B", 107, 100, 3);
  run.call(0, "cudaEventSynchronize", 12, 97, 4);
  EXPECT_EQ(waits(run), R"(
A -> cudaEventSynchronize: device sync (inferred)
cudaLaunchKernel -> A: launch 6us from start (measured)
cudaLaunchKernel -> B: launch 5us from start (measured)
)");
}

// The call returns long after B is done, too: only the record says which event it waited for.
TEST(Infer, ACallThatWaitsForAnEventWaitsForNothingLaunchedBehindTheEvent) {
  Recording run;
  run.call(0, "cudaLaunchKernel", 0, 2, 1).kernel(0, "A", 5, 10, 1);
  run.call(0, "cudaEventRecord", 2, 1, 2);
  run.call(0, "cudaLaunchKernel", 3, 2, 3).kernel(0, "B", 15, 5, 3);
  run.call(0, "cudaEventSynchronize", 5, 20, 4);
  run.trace().syncs.push_back(
      {.correlation = 4, .wait_on_stream = 0, .wait_on_correlation = 2, .kind = SyncKind::event});
  Inference inference = infer(run.trace());
  EXPECT_EQ(waits(inference.graph), R"(
A -> cudaEventSynchronize: device sync (measured)
cudaLaunchKernel -> A: launch 5us from start (measured)
cudaLaunchKernel -> B: launch 5us from start (measured)
)");
}

// The allocator waits for blocks of other streams before it frees any, without a recorded call.
TEST(Infer, AnOpWaitsInFrontOfACallThatFreesMemory) {
  const auto waits_with = [](int freed_at, std::string_view name) {
    Recording run;
    run.op(0, "aten::cat", 0, 2000).call(0, "cudaLaunchKernel", 0, 5, 1);
    run.kernel(0, "A", 6, 1000, 1);
    run.call(0, name, freed_at, 20, 2).call(0, "cudaFree", freed_at + 20, 20, 3);
    return infer(run.trace());
  };
  const Inference inference = waits_with(1040, "cudaFree");
  EXPECT_EQ(waits(inference.graph), R"(
A -> cudaFree: device sync (inferred)
cudaLaunchKernel -> A: launch 6us from start (measured)
)");
  Graph faster = inference.graph.clone();
  for (std::uint32_t i = 0; i < faster.task_count(); ++i) {
    if (faster.name(TaskId{i}) == "A") faster.task(TaskId{i}).duration = 100us;
  }
  EXPECT_EQ(inference.recorded.length, 2000us);
  EXPECT_EQ(simulate(faster).length, 1100us);
  // Longer behind the work, or in front of another call, the op was busy.
  for (const auto& [at, name] : {std::pair(1200, "cudaFree"), std::pair(1040, "cudaMalloc")})
    EXPECT_EQ(waits(waits_with(at, name).graph).find("A -> "), std::string::npos) << name;
}

TEST(Infer, ACallThatWaitsForTheDeviceWaitsForAllItsStreams) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  run.call(0, "cudaDeviceSynchronize", 4, 36, 3);
  run.kernel(0, "A", 5, 10, 1).kernel(1, "B", 7, 30, 2);
  Inference inference = infer(run.trace());
  EXPECT_EQ(waits(inference.graph), R"(
A -> cudaDeviceSynchronize: device sync (inferred)
B -> cudaDeviceSynchronize: device sync (inferred)
launch_a -> A: launch 5us from start (measured)
launch_b -> B: launch 5us from start (measured)
)");
  // Whichever of them is last, the call returns 3us after it.
  for (const auto& [name, length] : {std::pair("A", 58us), std::pair("B", 60us)}) {
    Graph longer = inference.graph.clone();
    for (std::uint32_t i = 0; i < longer.task_count(); ++i) {
      if (longer.name(TaskId{i}) == name) longer.task(TaskId{i}).duration = 50us;
    }
    EXPECT_EQ(simulate(longer).length, length);
  }
}

// The profiler knows nothing of events from before it was started, but they still are different
// events.
TEST(Infer, AWaitForAnEventFromBeforeTheRecordingIsNotGuessedWhereOthersAreKnown) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "cudaEventRecord", 2, 1, 2);
  run.call(0, "cudaStreamWaitEvent", 3, 1, 3).call(0, "launch_b", 4, 2, 4);
  run.call(0, "cudaStreamWaitEvent", 20, 1, 5).call(0, "launch_c", 21, 2, 6);
  run.kernel(0, "A", 5, 4, 1).kernel(1, "B", 12, 4, 4).kernel(2, "C", 26, 4, 6);
  run.waits_for_event(1, 0, 3, 2).waits_for_event(2, 0, 5, 99);
  EXPECT_EQ(waits(run), R"(
launch_a -> A: launch 5us from start (measured)
launch_b -> B: launch 5us from start (measured)
A -> B: event wait 3us (measured)
launch_c -> C: launch 5us from start (measured)
)");
}

/// Runs five rounds: a collective on stream 0, a call that makes stream 1 wait for an event, and a
/// kernel on stream 1. Only the last collective is done before its kernel could start. With
/// `early`, the kernel of the third round starts before its collective is done.
Recording waits_behind_collectives(bool early) {
  Recording run;
  for (int i = 0; i < 5; ++i) {
    const int at = 1000 * i;
    const auto id = static_cast<std::uint32_t>(10 * i + 1);
    run.call(0, "launch_s", at, 2, id).call(0, "cudaStreamWaitEvent", at + 3, 1, id + 1);
    run.call(0, "launch_q", at + 5, 2, id + 2);
    const int taken = i < 4 ? 300 : 5;
    run.kernel(0, "ncclDevKernel_SendRecv", at + 4, taken, id);
    const int start = i == 2 && early ? at + 100 : at + std::max(9, taken + 6);
    run.kernel(1, "Q", start, 20, id + 2);
  }
  return run;
}

std::size_t event_waits(Recording run) {
  std::size_t count = 0;
  const Graph graph = infer(run.trace()).graph;
  graph.each_dependency([&](const Dependency& wait) {
    if (wait.why == Rule::event_wait) ++count;
  });
  return count;
}

// Even if it did not delay anything, a wait that the same calls cause every time exists: with
// longer collectives the kernel starts later.
TEST(Infer, AWaitForAnEventThatBindsAgainAndAgainIsThereEveryTime) {
  Recording run = waits_behind_collectives(false);
  Inference inference = infer(run.trace());
  EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
  EXPECT_EQ(event_waits(waits_behind_collectives(false)), 5U);
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    if (inference.graph.task(TaskId{i}).kind == TaskKind::collective)
      inference.graph.task(TaskId{i}).duration = 500us;
  }
  EXPECT_GE(simulate(inference.graph).length, 4524us);
}

// One start did not wait, so the others are explained one by one, and no rule is concluded.
TEST(Infer, AWaitThatDidNotHoldOnceIsNoRule) {
  EXPECT_EQ(event_waits(waits_behind_collectives(true)), 3U);
}

// The copy starts late in its call because S ran, not because the driver worked first: with a
// quicker S the call returns earlier.
TEST(Infer, ACallWhoseCopyIsHeldByAnotherStreamWaitsForThat) {
  for (const bool recorded : {true, false}) {
    Recording run;
    run.call(0, "launch_s", 0, 2, 1).call(0, "cudaEventRecord", 2, 1, 3);
    run.call(0, "cudaStreamWaitEvent", 3, 1, 4).call(0, "cudaMemcpyAsync", 4, 68, 2);
    run.kernel(0, "S", 5, 60, 1).copy(1, CopyDirection::out, "Memcpy DtoH", 68, 2, 2);
    if (recorded) {
      run.waits_for_event(1, 0, 4, 3);
    } else {
      keep_stream_flags(run.trace(), {StreamFlag::blocking, StreamFlag::null});
    }
    Inference inference = infer(run.trace());
    EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
    for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
      if (inference.graph.name(TaskId{i}) == "S") inference.graph.task(TaskId{i}).duration = 10us;
    }
    EXPECT_EQ(simulate(inference.graph).length, 22us) << recorded;
  }
}

/// When each of 160 kernels of `kernel_us` is done. A host launches one every 5us as long as no
/// more than 100 are outstanding; `call` is called with each launch. One launch in `late` returns
/// only after the next kernel, if it waits.
template <class Call>
std::vector<int> through_a_queue_of_100(int kernel_us, const Call& call,
                                        std::size_t late = SIZE_MAX) {
  std::vector<int> finish;
  int host = 0;
  for (std::size_t i = 0; i < 160; ++i) {
    const int begin = host;
    const int start = finish.empty() ? 10 : std::max(finish.back(), begin + 10);
    host += 5;
    if (i > 100) host = std::max(host, finish[i - 101] + (i % late == 0 ? kernel_us : 0));
    call(begin, host, start);
    finish.push_back(start + kernel_us);
  }
  return finish;
}

TEST(Infer, TheDepthOfTheLaunchQueueIsTheOneThatExplainsMost) {
  // Every fourth launch that waits returns after one more kernel is done, so it sees one fewer.
  Recording run;
  std::uint32_t id = 0;
  const auto record = [&](int begin, int end, int start) {
    ++id;
    run.call(0, "launch", begin, end - begin, id);
    run.kernel(0, "k", start, 100, id);
  };
  through_a_queue_of_100(100, record, 4);
  const Inference inference = infer(run.trace());
  const auto tells_depth = [](const std::string& text) {
    return text.starts_with("The launch queue holds 100 activities");
  };
  EXPECT_TRUE(std::any_of(inference.assumptions.begin(), inference.assumptions.end(), tells_depth));
}

// Copies within the device take no place in the queue of 808 kernels, so about 1,010 activities are
// outstanding when a launch returns, more if it waited for the kernel in front of four copies.
TEST(Infer, TheDepthOfTheLaunchQueueIsABandIfSomeWorkTakesNoPlace) {
  Recording run;
  std::vector<int> finish_of_kernels;
  int host = 0, device = 10;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const int begin = host;
    const bool is_copy = i % 20 > 2 && i % 20 < 7;
    const int work = i % 20 == 0 || i % 20 == 7 ? 900 : 4;
    host += 5;
    if (const std::size_t kernels = finish_of_kernels.size(); !is_copy && kernels > 808)
      host = std::max(host, finish_of_kernels[kernels - 809]);
    device = std::max(device, begin + 10) + work;
    run.call(0, is_copy ? "copy" : "launch", begin, host - begin, i + 1);
    if (is_copy)
      run.copy(0, CopyDirection::on_device, "c", device - work, work, i + 1);
    else
      run.kernel(0, "k", device - work, work, i + 1);
    if (!is_copy) finish_of_kernels.push_back(device);
  }
  const Inference inference = infer(run.trace());
  const auto tells_band = [](const std::string& text) {
    return text.starts_with("The launch queue holds ") && text.find(" to ") != text.npos;
  };
  EXPECT_TRUE(std::any_of(inference.assumptions.begin(), inference.assumptions.end(), tells_band))
      << (inference.assumptions.empty() ? "none" : inference.assumptions.back());
  // The host waits for nearly all of the time in which the device works.
  Nanoseconds host_work{0};
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    if (runs_on_host(inference.graph.task(TaskId{i}).kind))
      host_work += inference.graph.task(TaskId{i}).duration;
  }
  EXPECT_LT(host_work, 30ms);
}

TEST(Infer, AHostThatFillsTheLaunchQueueWaitsForTheDevice) {
  Recording run;
  std::uint32_t id = 0;
  const std::vector<int> recorded = through_a_queue_of_100(100, [&](int begin, int end, int start) {
    ++id;
    const std::string number = std::to_string(id - 1);
    run.call(0, "launch" + number, begin, end - begin, id);
    run.kernel(0, "k" + number, start, 100, id);
  });
  Inference inference = infer(run.trace());
  EXPECT_EQ(simulate(inference.graph).length, Nanoseconds(recorded.back() * 1000));
  std::vector<std::string> seen;
  inference.graph.each_dependency([&](const Dependency& wait) {
    if (wait.why != Rule::launch_queue) return;
    seen.push_back(std::string(inference.graph.name(wait.before)) + " -> " +
                   std::string(inference.graph.name(wait.after)));
  });
  std::vector<std::string> expected;
  for (int i = 101; i < 160; ++i) {
    expected.push_back("k" + std::to_string(i - 101) + " -> launch" + std::to_string(i));
  }
  std::sort(seen.begin(), seen.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(seen, expected);
  // With a faster or slower device, the host is held up as that device would hold it up.
  for (const int kernel_us : {50, 30, 200}) {
    std::vector<int> launched;
    through_a_queue_of_100(kernel_us, [&](int, int end, int) { launched.push_back(end); });
    Graph changed = inference.graph.clone();
    TaskId last = kNoTask;
    for (std::uint32_t i = 0; i < changed.task_count(); ++i) {
      Task& task = changed.task(TaskId{i});
      if (task.kind == TaskKind::kernel) task.duration = Nanoseconds(kernel_us * 1000);
      if (changed.name(TaskId{i}) == "launch159") last = TaskId{i};
    }
    EXPECT_EQ(simulate(changed).finish[index(last)], Nanoseconds(launched.back() * 1000))
        << kernel_us;
  }
}

// One activity among hundreds starts before its launch, which no shift of a clock explains: B was
// launched after the host had waited for A, but ran before A.
TEST(Infer, WaitsThatGoRoundAreDroppedAndCounted) {
  Recording run;
  std::uint32_t id = 0;
  for (int i = 0; i < 400; ++i) {
    ++id;
    run.call(0, "launch", 10 * i, 2, id).kernel(0, "k", 10 * i + 3, 4, id);
  }
  run.call(0, "launch_a", 5000, 2, 1001).call(0, "cudaStreamSynchronize", 5002, 8, 1002);
  run.call(0, "launch_b", 5012, 2, 1003);
  run.kernel(0, "B", 5003, 1, 1003).kernel(0, "A", 5005, 1, 1001);
  const Inference inference = infer(run.trace());
  const auto& notes = inference.notes.all();
  const auto note = std::find_if(notes.begin(), notes.end(), [](const Note& one) {
    return one.text == "waits dropped because they formed a cycle";
  });
  ASSERT_NE(note, notes.end());
  EXPECT_EQ(note->count, 1);
  EXPECT_TRUE(shortest_cycle(inference.graph).empty());
  // The guessed wait is dropped, not the one that the profiler recorded.
  const std::string text = waits(inference.graph);
  EXPECT_EQ(text.find("A -> cudaStreamSynchronize"), std::string::npos);
  EXPECT_NE(text.find("launch_b -> B: launch"), std::string::npos);
  EXPECT_NO_THROW(simulate(inference.graph));
}

/// Two launches of a graph of two nodes on streams of their own.
Trace& replayed_twice(Recording& run) {
  for (std::uint32_t i = 0; i < 2; ++i) {
    const int start = 100 * static_cast<int>(i);
    run.call(0, "cudaGraphLaunch", start, 5, i + 1);
    run.kernel(0, "a", start + 10, 20, i + 1).kernel(1, "b", start + 32, 20, i + 1);
  }
  for (std::size_t i = 0; i < run.trace().devices.size(); ++i)
    run.trace().devices[i].graph_node = i % 2 + 1;
  return run.trace();
}

TEST(GraphWaits, KeepLaunchesOfOneGraphApart) {
  Recording run;
  const Graph graph = infer(replayed_twice(run)).graph;
  EXPECT_NE(waits(graph).find("b -> a: previous replay"), std::string::npos) << waits(graph);
}

/// The durations of kernels in the order of their starts, and the warnings.
std::string kernel_times(Recording& run) {
  const Inference found = infer(run.trace());
  std::string text;
  for (std::uint32_t i = 0; i < found.graph.task_count(); ++i) {
    const Task& task = found.graph.task(TaskId{i});
    if (task.kind == TaskKind::kernel) text += std::to_string(task.duration / 1us) + ' ';
  }
  for (const Note& note : found.notes.all())
    if (note.severity == Severity::warning) text += "| " + note.text.substr(0, 33);
  return text;
}

TEST(ImpossibleTimes, EndWhereTheNextKernelStarts) {
  Recording run;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const int start = 100 * static_cast<int>(i);
    run.call(0, "launch", start, 2, i + 1);
    run.kernel(0, "k", start + 10, i == 1 ? 1'600'000 : 20, i + 1);
  }
  EXPECT_EQ(kernel_times(run), "20 100 20 20 20 | device activities that outlast th");
}

TEST(ImpossibleTimes, EndBeforeTheWaitBehindThemReturns) {
  Recording run;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const int start = 1000 * static_cast<int>(i);
    run.call(0, "launch", start, 2, i + 1);
    run.kernel(0, "k", start + 10, i == 4 ? 1'600'000 : 20, i + 1);
    run.call(0, "cudaDeviceSynchronize", start + 5, 60, i + 100);
  }
  EXPECT_EQ(kernel_times(run), "20 20 20 20 55 | device activities that outlast th");
}

// Each batch is copied while the one before it is worked on: the work waits for the copy before the
// last one, two records of events back.
TEST(Waits, APipelineWaitsForAnOlderEvent) {
  Recording run;
  std::uint32_t id = 1;
  run.call(0, "copy", 0, 2, 1).call(0, "cudaEventRecord", 3, 1, 2);
  run.kernel(1, "C0", 10, 280, 1);
  for (int i = 1; i < 6; ++i) {
    const int at = 300 * i - 280;
    const std::string number = std::to_string(i);
    id += 10;
    run.call(0, "copy", at, 2, id).call(0, "cudaEventRecord", at + 3, 1, id + 1);
    run.call(0, "cudaStreamWaitEvent", at + 5, 1, id + 2).call(0, "work", at + 7, 2, id + 3);
    run.kernel(1, "C" + number, 300 * i - 9, 280, id).kernel(0, "Q", 300 * i - 6, 100, id + 3);
  }
  run.trace().properties.push_back({.ordinal = 0, .name = {}, .multiprocessors = 108});
  for (DeviceRecord& record : run.trace().devices) record.grid = 1;
  EXPECT_NE(waits(run).find("C0 -> Q: event wait"), std::string::npos) << waits(run);
  EXPECT_NE(waits(run).find("C4 -> Q: event wait"), std::string::npos) << waits(run);
}

}  // namespace
}  // namespace foretrace
