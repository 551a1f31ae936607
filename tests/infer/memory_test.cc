#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "foretrace/import.h"
#include "infer/recording.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

/// "1024 activation of aten::relu: written by A, read by B C" for each block.
std::string blocks(const Graph& graph) {
  std::ostringstream out;
  const AccessLists lists(graph);
  for (std::uint32_t i = 0; i < graph.allocations().size(); ++i) {
    const Allocation& block = graph.allocations()[i];
    out << "\n" << block.bytes.count << " " << to_string(block.use);
    if (block.op != NameId{}) out << " of " << graph.names()[block.op];
    for (const bool writes : {true, false}) {
      std::string tasks;
      for (const Access& access : lists.of(i)) {
        if (access.writes == writes) tasks += " " + std::string(graph.name(access.task));
      }
      if (!tasks.empty()) out << (writes ? ", written by" : ", read by") << tasks;
    }
  }
  return out.str() + "\n";
}

/// An op that launches one kernel at its end.
void launching(Recording& run, int thread, const std::string& op, int start, int duration) {
  const auto correlation = static_cast<std::uint32_t>(start + 1);
  run.op(thread, op, start, duration);
  run.call(thread, "cudaLaunchKernel", start + duration - 2, 1, correlation);
  run.kernel(0, "k" + std::to_string(start), 1000 + start, 5, correlation);
}

/// A forward pass on thread 0, a backward pass on thread 1, and an update on thread 0.
void train_step(Recording& run, int at) {
  run.step(at / 200, at, 190);
  launching(run, 0, "aten::relu", at, 10);
  launching(run, 0, "aten::linear", at + 10, 10);
  launching(run, 0, "aten::sum", at + 20, 10);
  launching(run, 1, "ReluBackward0", at + 100, 10);
  launching(run, 1, "torch::autograd::AccumulateGrad", at + 110, 10);
  run.host(0, HostKind::annotation, "Optimizer.step#SGD.step", at + 150, 30);
  launching(run, 0, "aten::add_", at + 160, 10);
}

TEST(InferMemory, TellsUsesByWhereBlocksAreMadeAndFreed) {
  Recording run;
  train_step(run, 0);
  train_step(run, 200);
  run.memory(0, 2, 0xa, 1024).memory(1, 109, 0xa, -1024);    // Kept for the backward pass.
  run.memory(0, 12, 0xb, 2048).memory(0, 19, 0xb, -2048);    // Lives only within the op.
  run.memory(0, 13, 0xc, 4096).memory(0, 35, 0xc, -4096);    // Freed with the forward pass.
  run.memory(1, 103, 0xd, 512).memory(1, 119, 0xd, -512);    // Passed from node to node.
  run.memory(1, 112, 0xe, 8192).memory(0, 195, 0xe, -8192);  // Lives until the update is done.
  run.memory(0, 162, 0xf, 1536);
  EXPECT_EQ(blocks(infer(run.trace()).graph), R"(
1024 activation of aten::relu, written by k0, read by k10 k100
2048 workspace of aten::linear, written by k10
4096 temporary of aten::linear, written by k10, read by k20
512 temporary of ReluBackward0, written by k100, read by k110
8192 gradient of torch::autograd::AccumulateGrad, written by k110, read by k160
1536 optimizer_state of aten::add_, written by k160 k360, read by k160 k360
)");
}

TEST(InferMemory, CanBeLeftOut) {
  Recording run;
  train_step(run, 0);
  train_step(run, 200);
  run.memory(0, 2, 0xa, 1024).memory(1, 109, 0xa, -1024);
  const Inference whole = infer(run.trace()), times = infer(run.trace(), {.memory = false});
  EXPECT_EQ(whole.graph.allocations().size(), 1U);
  EXPECT_TRUE(times.graph.allocations().empty());
  EXPECT_EQ(times.graph.task_count(), whole.graph.task_count());
  EXPECT_EQ(times.recorded.start, whole.recorded.start);
  EXPECT_EQ(times.recorded.finish, whole.recorded.finish);
}

TEST(InferMemory, BlocksInHostMemoryAreNotOnTheDevice) {
  Recording run;
  launching(run, 0, "aten::mul", 0, 10);
  run.memory(0, 2, 0x1, 512).memory(0, 3, 0x2, 1024);
  run.trace().memory[1].device = -1;
  EXPECT_EQ(infer(run.trace()).graph.allocations().size(), 1U);
}

TEST(InferMemory, BlocksOfOtherPhasesAreReadByTheNextOpWithinTheirLife) {
  Recording run;
  launching(run, 0, "aten::mul", 0, 10);
  launching(run, 0, "aten::add", 10, 10);
  run.memory(0, 2, 0xa, 512).memory(0, 15, 0xa, -512);
  // The second op launches only after the block is freed.
  EXPECT_EQ(blocks(infer(run.trace()).graph), "\n512 temporary of aten::mul, written by k0\n");
}

TEST(InferMemory, ShapesTellWhoReads) {
  Recording run;
  for (int i = 0; i < 4; ++i) launching(run, 0, "aten::op" + std::to_string(i), 10 * i, 10);
  run.memory(0, 2, 0xa, 1024).memory(0, 50, 0xa, -1024);
  Trace& trace = run.trace();
  trace.op_details.push_back({.shapes = trace.names.intern("[[16, 16], []]"),
                              .types = trace.names.intern("[\"float\", \"Scalar\"]")});
  for (HostRecord& host : trace.hosts) {
    if (trace.names[host.name] == "aten::op2") host.details = 0;
  }
  EXPECT_EQ(blocks(infer(trace).graph),
            "\n1024 temporary of aten::op0, written by k0, read by k20\n");
}

TEST(InferMemory, AnExecutionTraceTellsWhoTouchesABlock) {
  Recording run;
  for (int i = 0; i < 4; ++i) launching(run, 0, "aten::op" + std::to_string(i), 10 * i, 10);
  run.memory(0, 2, 0xa, 1024).memory(0, 50, 0xa, -1024);
  Trace& trace = run.trace();
  const auto tensor = [&](std::string_view op, bool is_output) {
    for (std::uint32_t i = 0; i < trace.hosts.size(); ++i) {
      if (trace.names[trace.hosts[i].name] != op) continue;
      trace.tensors.push_back(
          {.storage = 5, .bytes = 1000, .host = i, .device = 0, .is_output = is_output});
    }
  };
  tensor("aten::op0", true);
  tensor("aten::op3", false);
  const Graph graph = infer(trace).graph;
  EXPECT_EQ(blocks(graph), "\n1024 temporary of aten::op0, written by k0, read by k30\n");
  EXPECT_EQ(graph.accesses()[0].provenance, Provenance::measured);
}

TEST(InferMemory, TheBackwardNodeReadsWhatItsForwardOpTouched) {
  Recording run;
  train_step(run, 0);
  run.memory(0, 2, 0xa, 1024).memory(0, 140, 0xa, -1024);
  Trace& trace = run.trace();
  trace.op_details.push_back({.sequence = 7});
  for (HostRecord& host : trace.hosts) {
    const std::string_view name = trace.names[host.name];
    if (name == "aten::linear" || name == "torch::autograd::AccumulateGrad") host.details = 0;
  }
  EXPECT_EQ(blocks(infer(trace).graph),
            "\n1024 activation of aten::relu, written by k0, read by k10 k110\n");
}

TEST(InferMemory, EventsHappenWithinTheirTasksInRecordedOrder) {
  Recording run;
  run.op(0, "make", 0, 10).op(0, "drop", 10, 10);
  run.memory(0, 4, 0x10, 512).memory(0, 4, 0x20, 512).memory(0, 13, 0x10, -512);
  const Graph graph = infer(run.trace()).graph;
  const std::vector<Allocation>& made = graph.allocations();
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].made_after, 4us);
  EXPECT_EQ(made[0].freed_after, 3us);
  EXPECT_EQ(made[0].made_order, 0u);
  EXPECT_EQ(made[1].made_order, 1u);
  EXPECT_EQ(made[0].freed_order, 2u);
}

TEST(InferMemory, WithoutAddressesTheBatchThatGoesIsNotTheOneThatJustCame) {
  Recording run;
  for (int i = 0; i < 3; ++i) {
    launching(run, 0, "aten::to", 100 * i, 10);
    launching(run, 0, "aten::conv2d", 100 * i + 20, 10);
    run.memory(0, 100 * i + 2, 0, 4096).memory(0, 100 * i + 15, 0, -4096);
  }
  const Graph graph = infer(run.trace()).graph;
  ASSERT_EQ(graph.allocations().size(), 4u);
  // The block that is freed first existed before, and the one that is allocated last stays.
  EXPECT_EQ(graph.allocations()[1].made_by, kNoTask);
  EXPECT_EQ(graph.allocations()[3].freed_by, kNoTask);
}

TEST(InferMemory, WeightsOfOpsAreParametersFromBeforeTheRecording) {
  Recording run;
  train_step(run, 0);
  run.memory(0, 2, 0xa, 1024).memory(1, 109, 0xa, -1024);
  Trace& trace = run.trace();
  trace.op_details.push_back({.shapes = trace.names.intern("[[8, 32], [16, 32], [16]]"),
                              .types = trace.names.intern("[\"float\", \"float\", \"float\"]")});
  for (HostRecord& host : trace.hosts) {
    if (trace.names[host.name] == "aten::linear") host.details = 0;
  }
  trace.memory[0].total_allocated = 10240 + 1024;
  const Graph graph = infer(trace).graph;
  const std::string all = blocks(graph);
  EXPECT_EQ(all.substr(all.find('\n', 1)), R"(
2048 parameter of aten::linear, written by k160, read by k10 k160
512 parameter of aten::linear, written by k160, read by k10 k160
)");
  EXPECT_EQ(initial_memory(graph, 0), Bytes{10240});
  // Where the block cannot have lived, nothing is claimed.
  trace.memory[0].total_allocated = 1024 + 2048;
  EXPECT_EQ(infer(trace).graph.allocations().size(), 1u);
}

TEST(InferMemory, AnOpInPlaceChangesWhatWasMadeLast) {
  Recording run;
  launching(run, 0, "aten::conv2d", 0, 10);
  launching(run, 0, "aten::batch_norm", 10, 10);
  launching(run, 0, "aten::relu_", 20, 10);
  launching(run, 0, "aten::linear", 30, 10);
  run.memory(0, 2, 0xa, 1024).memory(0, 12, 0xb, 1024);
  Trace& trace = run.trace();
  trace.op_details.push_back(
      {.shapes = trace.names.intern("[[16, 16]]"), .types = trace.names.intern("[\"float\"]")});
  for (HostRecord& host : trace.hosts) {
    if (host.kind == HostKind::op) host.details = 0;
  }
  EXPECT_EQ(blocks(infer(trace).graph), R"(
1024 unknown of aten::conv2d, written by k0, read by k10
1024 unknown of aten::batch_norm, written by k10 k20, read by k20 k30
)");
}

TEST(InferMemory, GradientsThatAreAddedUpTellWhatWasThere) {
  Recording run;
  train_step(run, 0);
  run.op(1, "aten::add_", 111, 8);
  run.memory(1, 103, 0xd, 512).memory(1, 119, 0xd, -512);
  run.trace().memory[0].total_allocated = 4096 + 512;
  const Graph graph = infer(run.trace()).graph;
  EXPECT_EQ(blocks(graph), R"(
512 gradient of ReluBackward0, written by k100, read by k110
512 parameter of torch::autograd::AccumulateGrad, written by k160, read by k160
512 gradient of torch::autograd::AccumulateGrad, written by k110, read by k110 k160
)");
  EXPECT_EQ(initial_memory(graph, 0), Bytes{4096});
}

TEST(InferMemory, OneNodeForAWholePassReadsInTheOppositeOrder) {
  Recording run;
  constexpr int kOps = 40;
  run.step(0, 0, 2000);
  run.op(0, "CompiledFunction", 0, 10 * kOps).op(1, "CompiledFunctionBackward", 1000, 10 * kOps);
  for (int i = 0; i < kOps; ++i) {
    launching(run, 0, i == 10 ? "aten::tanh" : "aten::mm", 10 * i, 10);
    launching(run, 1, i == 35 ? "aten::tanh_backward" : "aten::mm", 1000 + 10 * i, 10);
  }
  run.memory(0, 102, 0xa, 1024).memory(1, 1399, 0xa, -1024);
  Trace& trace = run.trace();
  trace.op_details.push_back({.sequence = 7});
  for (HostRecord& host : trace.hosts) {
    if (trace.names[host.name].starts_with("CompiledFunction")) host.details = 0;
  }
  // Made by tanh and used by the next op: the backward node reads it where it computes their
  // gradients.
  EXPECT_EQ(blocks(infer(trace).graph),
            "\n1024 activation of aten::tanh, written by k100, read by k110 k1340 k1350\n");
}

/// Expects that the replay of a real trace keeps the recorded order, and reaches the recorded
/// levels.
TEST(InferMemory, RealTracesReplayInRecordedOrder) {
  const auto files =
      corpus_files({"df_index_resolver.json.gz", "w0_runA.pt.trace.json.gz", "qwen05b_h100.json.gz",
                    "switch-moe-mem/trace.json.gz", "batch_size_64.json.gz", "run1_a.json",
                    "bertsmall_mi300.json.gz", "memory_snapshot_200.pickle"});
  if (files.empty()) GTEST_SKIP() << kNoCorpus;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const Trace trace = import_trace(file);
    const Graph graph = infer(trace).graph;
    std::vector<const MemoryRecord*> records;
    for (const MemoryRecord& record : trace.memory) {
      const bool counts = record.device >= 0 && record.action == MemoryAction::block;
      if (counts) records.push_back(&record);
    }
    std::stable_sort(records.begin(), records.end(),
                     [](const auto* a, const auto* b) { return a->time_ns < b->time_ns; });
    std::int64_t level = records.empty() ? 0 : initial_memory(graph, records[0]->device).count;
    std::uint32_t last = 0;
    for (const MemoryEvent& event : memory_events(graph, simulate(graph))) {
      const Allocation& block = graph.allocations()[event.allocation];
      const std::uint32_t order = event.frees ? block.freed_order : block.made_order;
      ASSERT_GE(order, last);
      last = order;
      level += event.frees ? -block.bytes.count : block.bytes.count;
      if (records[order]->total_allocated < 0) continue;
      ASSERT_EQ(level, records[order]->total_allocated);
    }
  }
}

/// Expects that each access was launched during the life of its block.
TEST(InferMemory, AccessesLieInTheLifeOfTheirBlock) {
  const auto files = corpus_files({"df_index_resolver.json.gz", "w4_runA.pt.trace.json.gz"});
  if (files.empty()) GTEST_SKIP() << kNoCorpus;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const Inference inference = infer(import_trace(file));
    const Graph& graph = inference.graph;
    std::vector<Nanoseconds> launched(graph.task_count(), Nanoseconds::max());
    graph.each_dependency([&](const Dependency& wait) {
      if (wait.why != Rule::launch) return;
      launched[index(wait.after)] = inference.recorded.finish[index(wait.before)];
    });
    ASSERT_FALSE(graph.accesses().empty());
    for (const Access& access : graph.accesses()) {
      const Allocation& block = graph.allocations()[access.allocation];
      const Nanoseconds when = launched[index(access.task)];
      ASSERT_NE(when, Nanoseconds::max());
      if (block.made_by == kNoTask) continue;
      ASSERT_GE(when, inference.recorded.start[index(block.made_by)] + block.made_after);
    }
  }
}

}  // namespace
}  // namespace foretrace
