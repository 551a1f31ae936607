// The legacy default stream and the streams that wait for it.

#include <gtest/gtest.h>

#include "infer/recording.h"
#include "trace/stream_flags.h"

namespace foretrace {
namespace {

/// A on a stream of its own, B on the default stream, C after it. Each is launched at once, and
/// starts when the previous one is done.
Recording one_after_the_other() {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2).call(0, "launch_c", 4, 2, 3);
  run.kernel(0, "A", 5, 20, 1).kernel(1, "B", 28, 20, 2).kernel(0, "C", 51, 20, 3);
  return run;
}

/// The same tasks, but without waits: A was done before B was launched, and B before C.
Recording far_apart() {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 40, 2, 2).call(0, "launch_c", 80, 2, 3);
  run.kernel(0, "A", 5, 20, 1).kernel(1, "B", 45, 20, 2).kernel(0, "C", 85, 20, 3);
  return run;
}

constexpr auto kNoWaits = R"(
launch_a -> A: launch 5us from start (measured)
launch_c -> C: launch 5us from start (measured)
launch_b -> B: launch 5us from start (measured)
)";

constexpr auto kWaits = R"(
launch_a -> A: launch 5us from start (measured)
launch_c -> C: launch 5us from start (measured)
B -> C: default stream 3us (structural)
launch_b -> B: launch 5us from start (measured)
A -> B: default stream 3us (structural)
)";

TEST(DefaultStream, WaitsForBlockingStreamsAndTheyForIt) {
  Recording run = one_after_the_other();
  keep_stream_flags(run.trace(), {StreamFlag::blocking, StreamFlag::null});
  Inference inference = infer(run.trace());
  EXPECT_EQ(waits(inference.graph), kWaits);
  EXPECT_EQ(inference.graph.unexplained().lag, 0us);
  ASSERT_EQ(inference.assumptions.size(), 1U);
  EXPECT_EQ(inference.assumptions[0],
            "The default stream of device 0 and its blocking streams wait for each other, in order "
            "of launch (stream 0); the recording shows how the streams were created.");
}

// The waits did not delay anything when recorded, but they do when the host is ten times as fast.
TEST(DefaultStream, WaitsAlsoWhereTheRecordingShowsNoWait) {
  Recording run = far_apart();
  keep_stream_flags(run.trace(), {StreamFlag::blocking, StreamFlag::null});
  Inference inference = infer(run.trace());
  EXPECT_EQ(waits(inference.graph), kWaits);
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    Task& task = inference.graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel) task.duration /= 10;
  }
  EXPECT_EQ(simulate(inference.graph).length, 71us);
}

TEST(DefaultStream, NonBlockingStreamsAreExempt) {
  for (const StreamFlag flag : {StreamFlag::non_blocking, StreamFlag::unknown}) {
    Recording run = far_apart();
    keep_stream_flags(run.trace(), {flag, StreamFlag::null});
    EXPECT_EQ(waits(run), kNoWaits);
  }
}

TEST(DefaultStream, WhatTheRecordingContradictsIsLeftOutAndCounted) {
  Recording run;
  run.call(0, "launch_a", 0, 2, 1).call(0, "launch_b", 2, 2, 2);
  run.kernel(0, "A", 5, 20, 1).kernel(1, "B", 10, 5, 2);
  run.call(0, "launch_c", 60, 2, 3).kernel(0, "C", 65, 5, 3);
  keep_stream_flags(run.trace(), {StreamFlag::blocking, StreamFlag::null});
  const Inference inference = infer(run.trace());
  EXPECT_EQ(inference.notes.count("starts that did not wait for the default stream, or that it did "
                                  "not wait for, although the stream flags require it"),
            1);
  EXPECT_EQ(simulate(inference.graph).finish, inference.recorded.finish);
}

// Nine rounds of a kernel on stream 3 and a small one on stream 7, each launched while the previous
// kernel still runs. `between` is the host's calls between their launches.
Recording rounds(std::string_view between, int overlap_us = 0) {
  Recording run;
  std::uint32_t id = 0;
  run.call(0, "cudaStreamWaitEvent", 0, 1, ++id);
  for (int i = 0; i < 9; ++i) {
    const int start = 100 + 200 * i;
    run.call(0, "launch_a", start, 2, id + 1);
    if (!between.empty()) run.call(0, between, start + 2, 1, id + 4);
    run.call(0, "launch_b", start + 3, 2, id + 2);
    if (!between.empty()) run.call(0, between, start + 5, 1, id + 5);
    run.call(0, "launch_c", start + 6, 2, id + 3);
    run.kernel(3, "A", start + 5, 40, id + 1);
    run.kernel(7, "B", start + 48 - overlap_us, 30, id + 2);
    run.kernel(3, "C", start + 81, 20, id + 3);
    id += 5;
  }
  for (DeviceRecord& record : run.trace().devices) record.grid = 10;
  run.trace().properties.push_back({.ordinal = 0, .name = "A100", .multiprocessors = 108});
  return run;
}

std::size_t waits_for_default_stream(const Graph& graph, Provenance provenance) {
  std::size_t count = 0;
  graph.each_dependency([&](const Dependency& wait) {
    count += wait.why == Rule::default_stream && wait.provenance == provenance ? 1U : 0U;
  });
  return count;
}

TEST(DefaultStream, WithoutFlagsStartsThatNothingElseExplainsShowIt) {
  Recording run = rounds("");
  const Inference inference = infer(run.trace());
  // B waits for A, C for B, and from the second round on A for the B before C.
  EXPECT_EQ(waits_for_default_stream(inference.graph, Provenance::inferred), 18U);
  EXPECT_EQ(inference.assumptions.back(),
            "The default stream of device 0 and blocking streams are assumed to wait for each "
            "other (stream 3): their work never overlapped, and nothing else explains 18 starts. "
            "The recording does not show how the streams were created; if they are non-blocking, "
            "what-ifs overlap too little.");
}

TEST(DefaultStream, WithoutFlagsACallThatOrdersStreamsIsTheBetterReason) {
  Recording run = rounds("cudaStreamWaitEvent");
  const Inference inference = infer(run.trace());
  EXPECT_EQ(waits_for_default_stream(inference.graph, Provenance::inferred), 0U);
}

TEST(DefaultStream, WithoutFlagsOneOverlapShowsThatThereIsNoRule) {
  Recording run = rounds("", 0);
  run.call(0, "launch_d", 3000, 2, 900).call(0, "launch_e", 3002, 2, 901);
  run.kernel(3, "D", 3005, 50, 900).kernel(7, "E", 3010, 20, 901);
  EXPECT_EQ(waits_for_default_stream(infer(run.trace()).graph, Provenance::inferred), 0U);
}

TEST(DefaultStream, WithoutFlagsNothingIsConcludedWhereADeviceWasFull) {
  Recording run = rounds("");
  for (DeviceRecord& record : run.trace().devices) record.grid = 10'000;
  EXPECT_EQ(waits_for_default_stream(infer(run.trace()).graph, Provenance::inferred), 0U);
}

TEST(DefaultStream, WithoutFlagsNothingIsConcludedWhereNoOrderingCallWasEverRecorded) {
  Recording run = rounds("");
  run.trace().hosts.erase(run.trace().hosts.begin());
  EXPECT_EQ(waits_for_default_stream(infer(run.trace()).graph, Provenance::inferred), 0U);
}

TEST(DefaultStream, WithoutFlagsTwoCopiesMayShareAnEngine) {
  Recording run = rounds("");
  for (DeviceRecord& record : run.trace().devices) {
    record.kind = DeviceKind::copy;
    record.direction = CopyDirection::in;
    record.pinned_host = true;
  }
  EXPECT_EQ(waits_for_default_stream(infer(run.trace()).graph, Provenance::inferred), 0U);
}

TEST(StreamFlags, AreKeptAsMetadata) {
  Trace trace;
  trace.streams = {{.device = 0, .id = 7}, {.device = 0, .id = 13}, {.device = 1, .id = 7}};
  keep_stream_flags(trace, {StreamFlag::unknown, StreamFlag::unknown, StreamFlag::unknown});
  EXPECT_TRUE(trace.metadata.empty());
  const std::vector<StreamFlag> flags = {StreamFlag::null, StreamFlag::non_blocking,
                                         StreamFlag::unknown};
  keep_stream_flags(trace, flags);
  EXPECT_EQ(trace.metadata.at("cuda_stream_flags"), "[[0,7,3],[0,13,2]]");
  EXPECT_EQ(stream_flags(trace), flags);
  const std::vector<StreamFlag> none(3, StreamFlag::unknown);
  for (const char* odd : {"", "{", "7", "[[0,7]]", "[[0,7,9]]", "[[0,\"7\",3]]", "[[0,1e300,3]]"}) {
    trace.metadata["cuda_stream_flags"] = odd;
    EXPECT_EQ(stream_flags(trace), none) << odd;
  }
}

}  // namespace
}  // namespace foretrace
