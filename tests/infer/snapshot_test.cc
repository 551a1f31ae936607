#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

constexpr std::string_view kInit = "/m/net.py:3 __init__;/m/train.py:1 main";
constexpr std::string_view kForward =
    "/m/net.py:9 forward;/t/torch/nn/modules/module.py:5 _call_impl;/m/train.py:5 main";
constexpr std::string_view kUpdate = "/t/torch/optim/sgd.py:8 step;/m/train.py:8 main";
constexpr std::string_view kState = "/t/torch/optim/sgd.py:8 __init__;/m/train.py:2 main";

/// A snapshot written by hand: one event each microsecond, with levels as the allocator counts
/// them.
class Snapshot {
 public:
  Snapshot() {
    trace_.format = "torch_memory";
    trace_.threads.push_back({});
    trace_.streams.push_back({});
  }
  Snapshot& make(std::uint64_t address, std::int64_t bytes, std::string_view stack) {
    return event(address, bytes, stack);
  }
  Snapshot& free(std::uint64_t address) { return event(address, -live_[address], {}); }
  Snapshot& held(std::uint64_t address, std::int64_t bytes, std::string_view stack) {
    if (trace_.segments.empty()) trace_.segments.push_back({});
    trace_.blocks.push_back({.address = address,
                             .bytes = bytes,
                             .requested_bytes = bytes - 1,
                             .stack = trace_.names.intern(stack)});
    level_ += bytes;
    return *this;
  }
  Trace& trace() { return trace_; }

 private:
  Snapshot& event(std::uint64_t address, std::int64_t bytes, std::string_view stack) {
    const std::int64_t whole = (std::abs(bytes) + 511) / 512 * 512;
    level_ += bytes > 0 ? whole : -whole;
    if (bytes > 0) live_[address] = bytes;
    trace_.memory.push_back({.time_ns = 1000 * static_cast<std::int64_t>(trace_.memory.size()),
                             .address = address,
                             .bytes = bytes,
                             .total_allocated = level_,
                             .stack = trace_.names.intern(stack),
                             .device = 0});
    return *this;
  }

  Trace trace_;
  std::map<std::uint64_t, std::int64_t> live_;
  std::int64_t level_ = 0;
};

/// "600 of 1024: use, first line" for each block.
std::string snapshot_blocks(const Graph& graph) {
  std::ostringstream out;
  out << "\n";
  for (const Allocation& block : graph.allocations()) {
    const std::string_view stack = graph.names()[block.stack];
    out << block.requested.count << " of " << block.bytes.count << ": " << to_string(block.use);
    if (!stack.empty()) out << ", " << stack.substr(0, stack.find(';'));
    out << "\n";
  }
  return out.str();
}

void train_step(Snapshot& run) {
  run.make(0x10, 600, kForward).make(0x20, 700, kForward).free(0x20).make(0x30, 800, kForward);
  run.make(0x40, 900, "").make(0x50, 1100, "").free(0x30).free(0x50).free(0x10);
  run.make(0x60, 1000, kUpdate).free(0x60).free(0x40);
}

TEST(SnapshotGraph, TellsUsesByStacksAndLifetimes) {
  Snapshot run;
  run.make(0x1, 1000, kInit).make(0x2, 1000, kState);
  train_step(run);
  train_step(run);
  const Graph graph = infer(run.trace()).graph;
  const std::string all = snapshot_blocks(graph);
  EXPECT_EQ(all.substr(0, all.find("600 of 1024", 200)), R"(
1000 of 1024: parameter, /m/net.py:3 __init__
1000 of 1024: optimizer_state, /t/torch/optim/sgd.py:8 __init__
600 of 1024: activation, /m/net.py:9 forward
700 of 1024: temporary, /m/net.py:9 forward
800 of 1024: activation, /m/net.py:9 forward
900 of 1024: gradient
1100 of 1536: temporary
1000 of 1024: temporary, /t/torch/optim/sgd.py:8 step
)");
}

TEST(SnapshotGraph, WhatAnUpdatePutsInPlaceOfAParameterIsOne) {
  Snapshot run;
  run.make(0x1, 5000, kInit);
  train_step(run);
  run.make(0x2, 5000, kUpdate).free(0x1);
  train_step(run);
  run.make(0x3, 5000, kUpdate).free(0x2);
  const Graph graph = infer(run.trace()).graph;
  for (const Allocation& block : graph.allocations()) {
    if (block.requested != Bytes{5000}) continue;
    EXPECT_EQ(block.use, MemoryUse::parameter);
  }
}

// If an update makes two blocks, the last one replaces the block that is freed then.
TEST(SnapshotGraph, WhatElseAnUpdateMakesOfThatSizeIsNone) {
  Snapshot run;
  run.make(0x1, 5000, kInit);
  train_step(run);
  run.make(0x2, 5000, kUpdate).make(0x3, 5000, kUpdate).free(0x1);
  train_step(run);
  const Graph graph = infer(run.trace()).graph;
  std::string uses;
  for (const Allocation& block : graph.allocations()) {
    if (block.requested == Bytes{5000}) uses += std::string(to_string(block.use)) + ' ';
  }
  EXPECT_EQ(uses, "parameter optimizer_state parameter ");
}

TEST(SnapshotGraph, BlocksThatNoEventMentionsAreThereAllTheTime) {
  Snapshot run;
  run.held(0x100, 2048, kInit).held(0x200, 4096, kUpdate).held(0x300, 512, "");
  run.make(0x1, 600, kForward).free(0x1);
  const Inference inference = infer(run.trace());
  EXPECT_EQ(snapshot_blocks(inference.graph), R"(
600 of 1024: temporary, /m/net.py:9 forward
2047 of 2048: parameter, /m/net.py:3 __init__
4095 of 4096: optimizer_state, /t/torch/optim/sgd.py:8 step
511 of 512: unknown
)");
  EXPECT_EQ(initial_memory(inference.graph, 0), Bytes{2048 + 4096 + 512});
  EXPECT_EQ(simulate(inference.graph).memory[0].peak, Bytes{2048 + 4096 + 512 + 1024});
}

constexpr std::string_view kNowhere;

// Only weights wait for forward passes alone.
TEST(SnapshotGraph, WhatForwardPassesFindAreParameters) {
  Snapshot run;
  run.held(0x1, 4096, kNowhere).held(0x2, 8192, kNowhere);
  run.make(0x10, 600, kForward).free(0x10);
  EXPECT_EQ(snapshot_blocks(infer(run.trace()).graph), R"(
600 of 1024: temporary, /m/net.py:9 forward
4095 of 4096: parameter
8191 of 8192: parameter
)");
}

TEST(SnapshotGraph, WhatForwardPassesKeepIsKeptForABackwardPass) {
  Snapshot run;
  run.held(0x1, 4096, kNowhere);
  run.make(0x10, 600, kForward).make(0x11, 700, kForward).free(0x10);
  EXPECT_EQ(snapshot_blocks(infer(run.trace()).graph), R"(
600 of 1024: temporary, /m/net.py:9 forward
700 of 1024: activation, /m/net.py:9 forward
4095 of 4096: parameter
)");
}

// Three blocks of a size and one gradient of that size: a parameter and two optimizer states.
TEST(SnapshotGraph, WhatTrainingFindsAreAsManyParametersAsGradients) {
  Snapshot run;
  for (std::uint64_t address = 1; address <= 3; ++address) run.held(address, 1024, kNowhere);
  for (std::uint64_t address = 4; address <= 5; ++address) run.held(address, 2048, kNowhere);
  const auto step = [&] {
    run.make(0x10, 600, kForward).make(0x40, 1023, "").free(0x10);
    run.make(0x60, 3000, kUpdate).free(0x60).free(0x40);
  };
  step(), step(), step();
  const std::string all = snapshot_blocks(infer(run.trace()).graph);
  EXPECT_EQ(all.substr(all.find("1023 of 1024: parameter")), R"(1023 of 1024: parameter
1023 of 1024: unknown
1023 of 1024: unknown
2047 of 2048: unknown
2047 of 2048: unknown
)");
}

// The history ends with the backward pass, whose gradients are never freed.
TEST(SnapshotGraph, GradientsMayOutliveTheHistory) {
  Snapshot run;
  run.held(0x1, 1024, kNowhere).held(0x2, 2048, kNowhere);
  run.make(0x10, 600, kForward).make(0x40, 1023, "").free(0x10);
  const std::string all = snapshot_blocks(infer(run.trace()).graph);
  EXPECT_EQ(all.substr(all.find("1023 of 1024: parameter")), R"(1023 of 1024: parameter
2047 of 2048: unknown
)");
}

// A free is requested by one event and completed by another; only the second lowers the level.
TEST(SnapshotGraph, AHistoryMayBeginWithARequestToFree) {
  Snapshot run;
  run.held(0x2, 512, kNowhere);
  Trace& trace = run.trace();
  const auto add = [&](std::int64_t bytes, MemoryAction action, std::int64_t level) {
    trace.memory.push_back({.time_ns = 1000 * static_cast<std::int64_t>(trace.memory.size()),
                            .address = 0x1,
                            .bytes = bytes,
                            .total_allocated = level,
                            .device = 0,
                            .action = action});
  };
  add(-4096, MemoryAction::free_requested, 4608);
  add(-4096, MemoryAction::block, 512);
  const Graph graph = infer(trace).graph;
  ASSERT_EQ(graph.initial_memory().size(), 1U);
  EXPECT_EQ(graph.initial_memory()[0], Bytes{4608});
}

TEST(SnapshotGraph, KeepsTheTimesOfItsHistoryAndFindsSteps) {
  Snapshot run;
  run.make(0x1, 1000, kInit);
  for (int i = 0; i < 4; ++i) train_step(run);
  const Inference inference = infer(run.trace());
  const Timeline timeline = simulate(inference.graph);
  EXPECT_EQ(timeline.length, 48us);
  EXPECT_EQ(inference.graph.steps().size(), 4u);
  EXPECT_EQ(step_times(inference.graph, timeline).step_time, 12us);
  EXPECT_NE(inference.assumptions.back().find("memory can be predicted"), std::string::npos);
}

// The blocks of one forward pass appear again with every layer.
TEST(SnapshotGraph, LayersOfOneCallAreNotSteps) {
  const std::string root =
      "/m/net.py:20 forward;/t/torch/nn/modules/module.py:5 _call_impl;/m/train.py:5 main";
  const std::string embedding = "/m/net.py:3 forward;/t/torch/nn/modules/module.py:5 _call_impl;";
  const std::string layer = ";/m/net.py:30 forward;/t/torch/nn/modules/module.py:5 _call_impl;";
  const auto steps = [&](const std::string& outer, const std::string& first) {
    Snapshot snapshot;
    snapshot.make(7, 999, first);
    for (int i = 0; i < 8; ++i) {
      for (std::uint64_t k = 1; k <= 6; ++k)
        snapshot.make(k, static_cast<std::int64_t>(1000 * k),
                      "/t/f.py:" + std::to_string(k) + " gemm" + outer);
      for (std::uint64_t k = 1; k <= 6; ++k) snapshot.free(k);
    }
    return infer(snapshot.trace()).graph.steps().size();
  };
  EXPECT_EQ(
      steps(layer + root, embedding + "/m/net.py:19 forward;" + root.substr(root.find("/t/"))), 0U);
  EXPECT_EQ(steps(";" + root, "/m/train.py:1 main"), 8U);
}

TEST(SnapshotGraph, WithoutAHistoryIsAnError) {
  Snapshot run;
  run.held(0x100, 2048, kInit);
  EXPECT_THROW(infer(run.trace()), TraceError);
}

TEST(SnapshotGraph, OfARealModelHasParametersAndTwoStatesEach) {
  const auto files = corpus_files({"forward_and_backward_memory_snapshot_100.pickle",
                                   "forward_and_backward_memory_snapshot_200.pickle",
                                   "snapshot_200_mixed_precision.pickle"});
  if (files.empty()) GTEST_SKIP() << kNoCorpus;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const Trace trace = import_trace(file);
    const Inference inference = infer(trace);
    std::int64_t parameters = 0, states = 0;
    const Timeline timeline = simulate(inference.graph);
    ASSERT_EQ(timeline.memory.size(), 1u);
    const Nanoseconds peak = timeline.memory[0].peak_time;
    for (const MemoryEvent& event : memory_events(inference.graph, timeline)) {
      if (event.time > peak) break;
      const Allocation& block = inference.graph.allocations()[event.allocation];
      const std::int64_t change = event.frees ? -block.requested.count : block.requested.count;
      if (block.use == MemoryUse::parameter) parameters += change;
      if (block.use == MemoryUse::optimizer_state) states += change;
    }
    // 39 tensors made by the constructors of the modules, in single precision.
    EXPECT_EQ(parameters, 90785792);
    EXPECT_EQ(states, 2 * parameters);
    EXPECT_EQ(inference.graph.steps().size(), 2u);
  }
}

}  // namespace
}  // namespace foretrace
