// Recordings of programs that behave well.

#include <gtest/gtest.h>

#include "collect/recording.h"

namespace foretrace {
namespace {

TEST(Collect, EveryRecordOfAnOrdinaryProgramIsThere) {
  Recording recording({.program = {"normal", "50"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  EXPECT_EQ(told(recording.ended.out, "injection"), 1);
  expect_all_there(recording);
  const Trace& trace = recording.trace();
  EXPECT_EQ(kernels_of(trace),
            (std::map<std::string, int>{
                {"gemm_kernel(float*, float const*, int)", 50},
                {"void at::native::vectorized_elementwise_kernel<4, add>(int)", 50},
                {"Memcpy HtoD (Pinned -> Device)", 50},
                {"Memcpy DtoH (Device -> Pinned)", 50},
                {"Memset (Device)", 50}}));
  EXPECT_EQ(host_names_of(trace, HostKind::runtime),
            (std::map<std::string, int>{{"cudaLaunchKernel", 100},
                                        {"cudaMemcpyAsync", 100},
                                        {"cudaMemsetAsync", 50},
                                        {"cudaStreamSynchronize", 50}}));
  const std::vector<LaunchShape> shapes = {{132, 2, 1, 256, 1, 1, 40, 1024, 2048}};
  EXPECT_EQ(trace.launches, shapes);
  EXPECT_EQ(trace.syncs.size(), 50U);
  ASSERT_EQ(trace.properties.size(), 1U);
  EXPECT_EQ(trace.properties.at(0).name, "NVIDIA H200");
  EXPECT_EQ(trace.properties.at(0).multiprocessors, 132);
}

TEST(Collect, KernelsAreJoinedToTheCallsThatLaunchedThem) {
  Recording recording({.program = {"normal", "20"}});
  const Trace& trace = recording.trace();
  std::map<std::uint32_t, const HostRecord*> calls;
  for (const HostRecord& call : trace.hosts) {
    if (call.kind == HostKind::runtime) calls[call.correlation] = &call;
  }
  std::int64_t bytes = 0;
  for (const DeviceRecord& record : trace.devices) {
    const auto call = calls.find(record.correlation);
    ASSERT_NE(call, calls.end());
    EXPECT_GE(record.start_ns, call->second->start_ns);
    EXPECT_GT(record.duration_ns, 0);
    bytes += record.bytes;
  }
  const std::uint64_t wanted = recording.emitted["copy"].bytes + recording.emitted["fill"].bytes;
  EXPECT_EQ(bytes, static_cast<std::int64_t>(wanted));
}

TEST(Collect, ShorterRecordsOfOlderVersionsReadTheSame) {
  Recording old({.program = {"normal", "50"}, .cupti = STANDIN_12});
  Recording young({.program = {"normal", "50"}});
  expect_all_there(old);
  EXPECT_EQ(old.spooled().header.cupti_version, 22U);
  EXPECT_EQ(young.spooled().header.cupti_version, 130001U);
  EXPECT_EQ(kernels_of(old.trace()), kernels_of(young.trace()));
  EXPECT_EQ(old.trace().properties.at(0).name, "NVIDIA H200");
  Recording oldest({.program = {"events", "5"},
                    .environment = {{"FORETRACE_STANDIN", "version=18"}},
                    .cupti = STANDIN_12});
  expect_all_there(oldest);
}

TEST(Collect, ThreadsDoNotLoseEachOthersRecords) {
  Recording recording({.program = {"threads", "8", "5000"}});
  expect_all_there(recording);
  EXPECT_EQ(kernels_of(recording.trace()).at("kernel of a thread"), 40'000);
  EXPECT_EQ(host_names_of(recording.trace(), HostKind::annotation).at("work of a thread"), 8);
  EXPECT_EQ(recording.trace().streams.size(), 8U);
}

TEST(Collect, ThreadsThatHaveEndedAreNotForgotten) {
  Recording recording({.program = {"many_threads", "300"}});
  expect_all_there(recording);
  EXPECT_EQ(kernels_of(recording.trace()).at("kernel of a short thread"), 300);
  EXPECT_EQ(host_names_of(recording.trace(), HostKind::annotation).at("short"), 300);
}

TEST(Collect, LocksOfCuptiAndOursDoNotMeet) {
  // CUPTI holds a lock during callbacks, and its functions take the same lock.
  Recording recording({.options = {"--record", "kernels,api"},
                       .program = {"threads", "4", "20000"},
                       .environment = {{"FORETRACE_STANDIN", "strict=1"},
                                       {"FORETRACE_FLUSH_MS", "1"},
                                       {"FORETRACE_BUFFER_BYTES", "16384"}}});
  EXPECT_EQ(recording.ended.status, 0);
  expect_all_accounted(recording);
}

TEST(Collect, BuffersMayComeBackOnTheThreadThatFlushes) {
  Recording recording(
      {.program = {"normal", "50"}, .environment = {{"FORETRACE_STANDIN", "deliver=caller"}}});
  expect_all_there(recording);
}

TEST(Collect, AnEventUsedAgainIsResolvedByWhichRecordWasMeant) {
  for (const char* cupti : {STANDIN_13, STANDIN_12}) {
    Recording recording({.program = {"events", "5"}, .cupti = cupti});
    expect_all_there(recording);
    const Trace& trace = recording.trace();
    std::map<std::uint32_t, std::int64_t> recorded;  // cudaEventRecord by correlation -> start
    for (const HostRecord& call : trace.hosts) {
      if (trace.names[call.name] == "cudaEventRecord") recorded[call.correlation] = call.start_ns;
    }
    int stream_waits = 0;
    for (const SyncRecord& sync : trace.syncs) {
      if (sync.kind != SyncKind::stream_wait_event && sync.kind != SyncKind::event) continue;
      ASSERT_TRUE(recorded.contains(sync.wait_on_correlation)) << cupti;
      // It must be the last record of the event before the wait.
      EXPECT_LT(recorded[sync.wait_on_correlation], sync.start_ns);
      ASSERT_NE(sync.wait_on_stream, kNone);
      const std::int64_t from = trace.streams[sync.wait_on_stream].id;
      EXPECT_EQ(from, sync.kind == SyncKind::event ? 13 : 7);
      stream_waits += sync.kind == SyncKind::stream_wait_event ? 1 : 0;
    }
    EXPECT_EQ(stream_waits, 5);
  }
}

TEST(Collect, AGraphCapturedBeforeItRunsHasItsEdges) {
  Recording recording({.program = {"graph", "3"}});
  expect_all_there(recording);
  const Trace& trace = recording.trace();
  std::map<std::uint64_t, std::string> node_names;
  for (const DeviceRecord& record : trace.devices) {
    ASSERT_NE(record.graph_node, 0U);
    node_names[record.graph_node] = trace.names[record.name];
  }
  ASSERT_EQ(node_names.size(), 4U);
  std::map<std::string, int> edges;
  for (const GraphEdge& edge : trace.graph_edges) {
    if (node_names.contains(edge.before) && node_names.contains(edge.after))
      ++edges[node_names[edge.before] + " -> " + node_names[edge.after]];
  }
  EXPECT_EQ(edges, (std::map<std::string, int>{{"node_a -> node_b", 1},
                                               {"node_a -> node_c", 1},
                                               {"node_b -> node_d", 1},
                                               {"node_c -> node_d", 1}}));
}

TEST(Collect, MemoryOfTheDriverIsSegmentsAndPoolsAreBlocks) {
  for (const char* cupti : {STANDIN_13, STANDIN_12}) {
    Recording recording({.program = {"memory", "5"}, .cupti = cupti});
    expect_all_there(recording);
    std::map<MemoryAction, std::int64_t> bytes;
    std::map<MemoryAction, int> count;
    for (const MemoryRecord& record : recording.trace().memory) {
      bytes[record.action] += record.bytes;
      ++count[record.action];
    }
    EXPECT_EQ(count[MemoryAction::segment_alloc], 5);
    EXPECT_EQ(count[MemoryAction::segment_free], 5);
    EXPECT_EQ(count[MemoryAction::block], 5);
    EXPECT_EQ(bytes[MemoryAction::segment_alloc], 5 * (2 << 20));
    EXPECT_EQ(bytes[MemoryAction::segment_free], -5 * (2 << 20));
    EXPECT_EQ(bytes[MemoryAction::block], 5 * 4096);
    EXPECT_EQ(kernels_of(recording.trace()).at("Memcpy PtoP (Device -> Device)"), 1);
  }
}

TEST(Collect, CallsThatSayNothingAreNotRecorded) {
  Recording recording({.program = {"chatter", "1000"}});
  EXPECT_EQ(recording.ended.status, 0);
  expect_all_there(recording);
  EXPECT_EQ(recording.emitted["driver"].written, 0U) << recording.ended.out;
  EXPECT_EQ(host_names_of(recording.trace(), HostKind::runtime).count("cudaGetDevice"), 0U);
}

TEST(Collect, WhatBelongsToRecordsIsFreed) {
  constexpr std::int64_t kRecords = 50'000;
  Recording recording({.program = {"details", std::to_string(kRecords)}});
  EXPECT_EQ(recording.ended.status, 0);
  // A leak would keep 32 bytes for each record.
  EXPECT_LT(told(recording.ended.out, "held"), kRecords * 16) << recording.ended.out;
}

TEST(Collect, OnlyWhatIsAskedForIsRecorded) {
  Recording recording({.options = {"--record", "kernels"}, .program = {"normal", "10"}});
  expect_all_there(recording);
  EXPECT_EQ(recording.emitted["kernel"].written, 20U);
  EXPECT_EQ(recording.emitted.count("runtime"), 0U);
  EXPECT_EQ(recording.emitted.count("sync"), 0U);
}

TEST(Collect, TheProgramChoosesAWindow) {
  Recording recording({.options = {"--profiler-api"}, .program = {"profiler_api", "10"}});
  expect_all_accounted(recording);
  EXPECT_EQ(kernels_of(recording.trace()), (std::map<std::string, int>{{"inside", 10}}));
}

TEST(Collect, StepsChooseAWindow) {
  Recording recording({.options = {"--steps", "2-3"}, .program = {"steps", "6"}});
  expect_all_accounted(recording);
  const auto kernels = kernels_of(recording.trace());
  EXPECT_EQ(kernels.count("only_in_step_1"), 0U);
  EXPECT_EQ(kernels.count("only_in_step_2"), 1U);
  EXPECT_EQ(kernels.count("only_in_step_3"), 1U);
  EXPECT_EQ(kernels.count("only_in_step_4"), 0U);
  const auto ranges = host_names_of(recording.trace(), HostKind::annotation);
  EXPECT_EQ(ranges.count("ProfilerStep#1"), 0U);
  EXPECT_EQ(ranges.count("ProfilerStep#2"), 1U);
  EXPECT_EQ(ranges.count("ProfilerStep#3"), 1U);
}

TEST(Collect, StepsMayHaveRegisteredNames) {
  Recording recording({.options = {"--steps", "2-3"}, .program = {"steps", "6", "registered"}});
  expect_all_accounted(recording);
  const auto kernels = kernels_of(recording.trace());
  EXPECT_EQ(kernels.count("only_in_step_1"), 0U);
  EXPECT_EQ(kernels.count("only_in_step_2"), 1U);
  EXPECT_EQ(kernels.count("only_in_step_3"), 1U);
  EXPECT_EQ(kernels.count("only_in_step_4"), 0U);
}

TEST(Collect, TimeChoosesAWindow) {
  Recording recording(
      {.options = {"--start-after", "500ms", "--duration", "500ms"}, .program = {"window"}});
  expect_all_accounted(recording);
  EXPECT_GT(told(recording.ended.out, "before"), 0);
  EXPECT_GT(recording.spooled().rows["kernel"], 0U);
}

TEST(Collect, TheProgramsOutputIsItsOwn) {
  const Ended alone = run_program({PLAYED_APP, "exit", "0"}, {{"CUDA_INJECTION64_PATH", ""}});
  Recording recording({.options = {"--quiet"}, .program = {"exit", "0"}});
  EXPECT_EQ(recording.ended.err, "");
  EXPECT_EQ(recording.ended.out.find("foretrace"), std::string::npos);
  EXPECT_EQ(alone.status, 0);
}

TEST(Collect, AFlushPeriodOfCuptisOwnWouldNotBeEnough) {
  // The records of a program that does little are on disk long before their buffer is full.
  Recording recording({.program = {"kill", "3", "0"}});
  EXPECT_EQ(recording.ended.status, 128 + 9);
  expect_all_accounted(recording);
}

}  // namespace
}  // namespace foretrace
