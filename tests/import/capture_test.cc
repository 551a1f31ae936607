#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "import/files.h"
#include "trace/serving/serving_step.h"
#include "trace/validate.h"

namespace foretrace {
namespace {

/// Events at positions that follow each other.
class Events {
 public:
  void call(const std::string& name, int correlation, const std::string& kernel = "") {
    add("cuda_runtime", name, 1,
        "\"correlation\": " + std::to_string(correlation) +
            (kernel.empty() ? "" : ", \"kernel\": \"" + kernel + "\""));
  }
  void op(const std::string& name, const std::string& shapes, const std::function<void()>& inside) {
    around("cpu_op", name, "\"Input Dims\": " + shapes, inside);
  }
  void frame(const std::string& name, const std::function<void()>& inside) {
    around("python_function", name, "\"Python id\": 1", inside);
  }
  void range(const std::string& name, const std::function<void()>& inside) {
    around("user_annotation", name, "", inside);
  }
  void kernel(const std::string& name, int correlation) {
    add("kernel", name, 4,
        "\"device\": 0, \"stream\": 7, \"correlation\": " + std::to_string(correlation));
  }
  std::string trace(int rank = 0) const {
    return R"({"distributedInfo": {"rank": )" + std::to_string(rank) +
           R"(, "world_size": 2}, "traceEvents": [)" + all_ + "]}";
  }

 private:
  void around(const std::string& category, const std::string& name, const std::string& args,
              const std::function<void()>& inside) {
    const int start = now_++;
    inside();
    write(category, name, start, now_++ - start, args);
  }
  void add(const std::string& category, const std::string& name, int duration,
           const std::string& args) {
    write(category, name, now_, duration, args);
    now_ += duration + 1;
  }
  void write(const std::string& category, const std::string& name, int start, int duration,
             const std::string& args) {
    const bool on_device = category == "kernel";
    all_ += std::string(all_.empty() ? "" : ",") + R"({"ph": "X", "cat": ")" + category +
            R"(", "name": ")" + name + R"(", "pid": )" + (on_device ? "0" : "1") + R"(, "tid": )" +
            (on_device ? "7" : "1") + R"(, "ts": )" + std::to_string(start) + R"(, "dur": )" +
            std::to_string(duration) + R"(, "args": {)" + args + "}}";
  }
  std::string all_;
  int now_ = 10;
};

using Graphs = std::vector<std::vector<std::string>>;
const Graphs kLayers = {{"gemm", "norm"}, {"gemm", "topk", "norm"}};

std::string capture_of(const Graphs& graphs, int size = 8, int rank = 0) {
  Events events;
  const std::string tokens = std::to_string(size);
  events.range("capture_" + tokens + "_PIECEWISE", [&] {
    events.frame("nn.Module: Model_0", [&] {
      for (const auto& graph : graphs) {
        events.call("hipStreamBeginCapture", 0);
        for (const std::string& kernel : graph) {
          events.op("my::" + kernel, "[[" + tokens + ", 16], [16, 4]]", [&] {
            events.op("aten::mm", "[[" + tokens + ", 16], [16, 4]]",
                      [&] { events.call("hipLaunchKernel", 1, kernel); });
          });
        }
        events.call("hipStreamEndCapture", 0);
      }
    });
  });
  return events.trace(rank);
}

std::string replay_of(const Graphs& graphs, const std::string& step, int steps = 1) {
  Events events;
  for (int s = 0; s < steps; ++s) {
    events.range(step, [&] {
      for (std::size_t i = 0; i < graphs.size(); ++i)
        events.call("hipGraphLaunch", 100 * (s + 1) + static_cast<int>(i));
    });
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      for (const std::string& name : graphs[i])
        events.kernel(name, 100 * (s + 1) + static_cast<int>(i));
    }
  }
  return events.trace();
}

constexpr auto kStep = "execute_context_1(3)_generation_4(4)";  // 7 tokens, padded to 8.

class Capture : public testing::Test {
 protected:
  Trace joined(const std::string& replay, const std::string& capture) {
    folder_.write("captures/capture.json", capture);
    return import_trace(folder_.write("replay/trace.json", replay),
                        {.capture = folder_.path() + "/captures"});
  }
  std::string refusal(const std::string& replay, const std::string& capture) {
    std::string text = failure([&] { joined(replay, capture); });
    for (std::size_t at; (at = text.find(folder_.path() + "/")) != text.npos;)
      text.erase(at, folder_.path().size() + 1);
    return text;
  }

  Folder folder_;
};

TEST_F(Capture, GivesEachKernelOfAReplayItsOp) {
  const Trace trace = joined(replay_of(kLayers, kStep, 2), capture_of(kLayers));
  validate(trace);
  ASSERT_EQ(trace.captured.size(), 5U);
  EXPECT_EQ(trace.notes.count("activities of graphs with the ops of their capture"), 10);
  for (const DeviceRecord& record : trace.devices) {
    const CapturedNode* const node = captured_node(trace, record);
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(trace.names[node->path],
              "my::" + std::string(trace.names[record.name]) + "/aten::mm");
    EXPECT_EQ(trace.names[node->op], "aten::mm");
    EXPECT_EQ(trace.names[node->shapes], "[[8, 16], [16, 4]]");
    EXPECT_EQ(trace.names[node->module], "Model_0");
  }
  const Inference inferred = infer(trace);
  std::int64_t kernels = 0;
  for (std::uint32_t i = 0; i < inferred.graph.task_count(); ++i) {
    const Task& task = inferred.graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel) continue;
    ++kernels;
    EXPECT_EQ(task.flops, 2 * 8 * 16 * 4);
    EXPECT_EQ(inferred.graph.names()[task.module], "Model_0");
  }
  EXPECT_EQ(kernels, 10);
}

TEST_F(Capture, IsFoundBesideTheTrace) {
  folder_.write("capture_traces/graph_capture_rank_0.1.json", capture_of(kLayers));
  const std::string path = folder_.write("trace.json", replay_of(kLayers, kStep));
  EXPECT_EQ(import_trace(path).captured.size(), 5U);
  EXPECT_EQ(import_all(folder_.path()).at(0).captured.size(), 5U);
}

TEST_F(Capture, InTheFolderOfTheTraceIsNoRank) {
  folder_.write("capture.json", capture_of(kLayers));
  folder_.write("trace.json", replay_of(kLayers, kStep));
  folder_.write("execution_details.json",
                R"([{"file": "other.json", "batch_size": 8, "mode": "PIECEWISE"}])");
  const std::vector<Trace> traces = import_all(folder_.path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].captured.size(), 5U);
}

TEST_F(Capture, ThatDoesNotFitIsRefused) {
  const std::string replay = replay_of(kLayers, kStep);
  EXPECT_EQ(refusal(replay, capture_of(kLayers, 8, 1)),
            "replay/trace.json: captures: must be a capture of rank 0, like the trace, but is of "
            "rank 1");
  EXPECT_EQ(refusal(replay, capture_of(kLayers, 4)),
            "replay/trace.json: captures: must be a capture of at least 7 tokens, as "
            "\"execute_context_1(3)_generation_4(4)\" has, but the largest is of 4");
  EXPECT_EQ(refusal(replay, capture_of({{"gemm", "norm"}, {"gemm", "norm"}})),
            "replay/trace.json: captures: must capture what graph 2 of "
            "\"execute_context_1(3)_generation_4(4)\" runs, 3 activities, but captures 2 launches");
  EXPECT_EQ(refusal(replay, capture_of({{"gemm", "norm"}, {"topk", "gemm", "norm"}})),
            "replay/trace.json: captures: must capture graphs in the order of "
            "\"execute_context_1(3)_generation_4(4)\", but activity 1 of graph 2 is gemm, where "
            "topk was captured");
  EXPECT_EQ(refusal(replay, capture_of({{"gemm", "norm"}, kLayers[1], {"gemm"}})),
            "replay/trace.json: captures: must capture the 2 graphs that "
            "\"execute_context_1(3)_generation_4(4)\" launches, but captures 3");
  EXPECT_EQ(refusal(replay, replay),
            "replay/trace.json: captures: must hold a recording of the capture of graphs, but "
            "holds none");
  std::string cut = capture_of(kLayers);
  cut.replace(cut.rfind("hipStreamEndCapture"), 19, "hipStreamIsCapturin");
  EXPECT_EQ(refusal(replay, cut),
            "replay/trace.json: captures/capture.json: must hold whole captures, but begins 2 and "
            "ends 1");
  std::string other = capture_of(kLayers);
  other.replace(other.find("capture_8"), 9, "capture_9");
  EXPECT_EQ(refusal(replay, other),
            "replay/trace.json: captures/capture.json: must be a capture of 9 tokens, but none of "
            "its ops has inputs of that size");
}

TEST_F(Capture, OfOneRankLeavesTheOthersOfAJobUnmatched) {
  folder_.write("captures/capture.json", capture_of(kLayers, 8, 1));
  folder_.write("job/rank0.json", replay_of(kLayers, kStep));
  const auto traces =
      import_all(folder_.path() + "/job", {.capture = folder_.path() + "/captures"});
  EXPECT_EQ(traces.at(0).notes.count("traces whose rank has no capture"), 1);
}

TEST_F(Capture, BesideATraceThatDoesNotFitIsOnlyNoted) {
  folder_.write("capture_traces/capture.json", capture_of(kLayers, 4));
  const Trace trace = import_trace(folder_.write("trace.json", replay_of(kLayers, kStep)));
  EXPECT_EQ(trace.notes.count("captures beside the trace that do not fit"), 1);
  EXPECT_TRUE(trace.captured.empty());
}

TEST_F(Capture, OfASizeThatSomeStepsExceedLeavesTheseUnmatched) {
  Events events;
  for (int s = 1; s <= 2; ++s) {
    events.range(s == 1 ? kStep : "step[DECODE bs=64]", [&] { events.call("hipGraphLaunch", s); });
    events.kernel("gemm", s);
  }
  const Trace trace = joined(events.trace(), capture_of({{"gemm"}}));
  EXPECT_EQ(trace.notes.count("activities of graphs with the ops of their capture"), 1);
  EXPECT_EQ(trace.notes.count("activities of graphs without a capture of their size"), 1);
}

TEST(ServingStep, ReadsTheNamesOfEngines) {
  const auto read = [](const char* name) { return kind_of(serving_step(name).value()); };
  EXPECT_EQ(read("execute_context_2(14721)_generation_30(30)"),
            "mixed, 14,721 tokens and decode of 30");
  const ServingStep step = *serving_step(
      "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37"
      "sqsk34489)");
  EXPECT_EQ(step.prompt_tokens, 8155);
  EXPECT_EQ(step.tokens(), 8192);
  EXPECT_EQ(step.context, 34489);
  EXPECT_EQ(read("execute_context_0(0)_generation_64(64)"), "decode of 64");
  EXPECT_EQ(read("execute_new_0_cached_8"), "decode of 8");
  EXPECT_EQ(read("step[EXTEND bs=2 toks=14721]"), "prefill of 14,721 tokens");
  EXPECT_EQ(read("step[DECODE bs=117 g_sq=117 g_sk=4000]"), "decode of 117");
  EXPECT_EQ(serving_step("step[DECODE bs=117 g_sq=117 g_sk=4000]")->context, 4000);
  EXPECT_EQ(read("prefill[bs=6 tok=17408 ctx=[4096, 4096]...+3]"), "prefill of 17,408 tokens");
  EXPECT_EQ(serving_step("decode[bs=117/128 tok=117 d=117]")->padded, 128);
  EXPECT_EQ(read("[Executor] _forward_step 7: 2 ctx reqs, 30 gen reqs, 900 ctx tokens"),
            "mixed, 900 tokens and decode of 30");
  for (const char* other :
       {"execute_context_", "execute_model", "step[9]", "step 7", "execute_context_x_generation_1",
        "decode[bs=]", "execute_context_1(99999999999999999999)_generation_1(1)"})
    EXPECT_FALSE(serving_step(other).has_value()) << other;
}

// A step of 8,192 tokens in 25 graphs, and its capture.
TEST(CaptureCorpus, SeesThroughAllGraphsOfAStep) {
  const char* corpus = std::getenv("FORETRACE_CORPUS");
  const std::string folder = std::string(corpus == nullptr ? "" : corpus) + "/vllm-capture";
  const std::string path = folder + "/replay_vllm_piecewise.json.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "FORETRACE_CORPUS names no such recording";
  const Trace trace = import_trace(path, {.capture = folder});
  EXPECT_EQ(trace.notes.count("activities of graphs with the ops of their capture"), 361);
  std::size_t known = 0;
  for (const CapturedNode& node : trace.captured)
    known += node.op != NameId{} && node.shapes != NameId{} && node.module != NameId{} ? 1U : 0U;
  EXPECT_EQ(known, 361U);
}

}  // namespace
}  // namespace foretrace
