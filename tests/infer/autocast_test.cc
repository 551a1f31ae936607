// What torch.autocast would change in ops, by their shapes.

#include <gtest/gtest.h>

#include <map>

#include "infer/recording.h"

namespace foretrace {
namespace {

struct TestedOp {
  std::string name, shapes;
  std::int64_t sequence = -1;
  std::string values = {};
  std::vector<std::string> inner = {};  ///< Ops inside of it.
  bool launches = true;
};

/// Records ops one after the other, each with a kernel that has the name of the op and its place
/// among those of this name: "aten::linear 1".
class Ops {
 public:
  Ops& forward(const std::vector<TestedOp>& ops) { return run(0, ops); }
  Ops& backward(const std::vector<TestedOp>& ops) { return run(1, ops); }

  std::map<std::string, AutocastWork> work() {
    const Graph graph = infer(run_.trace()).graph;
    std::map<std::string, AutocastWork> found;
    for (const AutocastWork& work : graph.autocast())
      found[std::string(graph.name(work.task))] = work;
    return found;
  }

 private:
  Ops& run(int thread, const std::vector<TestedOp>& ops) {
    for (const TestedOp& op : ops) {
      if (thread == 1) add("autograd::engine::evaluate_function: " + op.name, op, 9);
      add(op.name, op, 8);
      int inner = 0;
      for (const std::string& name : op.inner) run_.op(thread_, name, now_ + 2 + inner++, 1);
      if (op.launches) {
        ++launched_;
        run_.call(thread_, "cudaLaunchKernel", now_ + 6, 1, launched_);
        const std::string kernel = op.name + " " + std::to_string(++count_[op.name]);
        run_.kernel(0, kernel, now_ + 7, 2, launched_);
      }
      now_ += 20;
      thread_ = thread;
    }
    return *this;
  }

  void add(const std::string& name, const TestedOp& op, int length) {
    run_.op(thread_ = name.starts_with("autograd") || thread_ == 1 ? 1 : 0, name, now_, length);
    Trace& trace = run_.trace();
    std::string types = "[";
    int depth = 0;
    for (const char c : op.shapes) {
      if (c == '[' && ++depth == 2) types += types.size() > 1 ? ", \"float\"" : "\"float\"";
      if (c == ']') --depth;
    }
    trace.hosts.back().details = static_cast<std::uint32_t>(trace.op_details.size());
    trace.op_details.push_back({.shapes = trace.names.intern(op.shapes),
                                .types = trace.names.intern(types + "]"),
                                .values = trace.names.intern(op.values),
                                .sequence = op.sequence});
  }

  Recording run_;
  std::map<std::string, int> count_;
  std::uint32_t launched_ = 0;
  int now_ = 0, thread_ = 0;
};

/// A layer of a transformer with its norm in front: [2, 4, 8] in and out.
std::vector<TestedOp> layer() {
  return {{"aten::embedding", "[[100, 8], [2, 4]]", 0},
          {"aten::layer_norm", "[[2, 4, 8], [], [8], [8]]", 1},
          {"aten::linear", "[[2, 4, 8], [24, 8], [24]]", 2},
          {"aten::unbind", "[[3, 2, 4, 8], []]", 3, "", {}, false},
          {"aten::scaled_dot_product_attention", "[[2, 4, 8], [2, 4, 8], [2, 4, 8]]", 4},
          {"aten::linear", "[[2, 4, 8], [8, 8], [8]]", 5},
          {"aten::dropout", "[[2, 4, 8]]", 6},
          {"aten::add", "[[2, 4, 8], [2, 4, 8]]", 7}};
}

TEST(Autocast, ConvertsWeightsAndWhatNormsMade) {
  auto work = Ops().forward(layer()).work();
  EXPECT_EQ(work["aten::linear 1"].casts, 3U);  // Weight, bias and input.
  EXPECT_EQ(work["aten::linear 1"].weights, 24 * 8 + 24);
  EXPECT_EQ(work["aten::linear 1"].elements, 64);
  EXPECT_FALSE(work.contains("aten::scaled_dot_product_attention 1"));
  EXPECT_EQ(work["aten::linear 2"].casts, 2U);  // Attention made its input.
  EXPECT_EQ(work["aten::linear 2"].elements, 0);
  EXPECT_FALSE(work.contains("aten::dropout 1"));
}

TEST(Autocast, KnowsWhichPartStaysInFull) {
  auto work = Ops().forward(layer()).work();
  EXPECT_EQ(work["aten::layer_norm 1"].narrow, 0);
  EXPECT_EQ(work["aten::embedding 1"].narrow, 0);
  // It reads the residual stream in FP32 and what attention made in half precision.
  EXPECT_FLOAT_EQ(work["aten::add 1"].narrow, 1.0F / 3);
}

TEST(Autocast, ConvertsGradientsBack) {
  auto work = Ops()
                  .forward(layer())
                  .backward({{"AddBackward0", "[[2, 4, 8]]", 7, "", {}, false},
                             {"NativeDropoutBackward0", "[[2, 4, 8]]", 6},
                             {"AddmmBackward0", "[[8, 8]]", 5, "", {"aten::mm", "aten::mm"}},
                             {"SdpBackward0", "[[2, 4, 8]]", 4},
                             {"AddmmBackward0", "[[8, 24]]", 2, "", {"aten::mm", "aten::mm"}},
                             {"NativeLayerNormBackward0", "[[2, 4, 8]]", 1}})
                  .work();
  EXPECT_EQ(work["NativeDropoutBackward0 1"].casts, 1U);  // From the sum, which is in FP32.
  EXPECT_EQ(work["NativeDropoutBackward0 1"].elements, 64);
  EXPECT_EQ(work["AddmmBackward0 1"].casts, 2U);
  EXPECT_EQ(work["AddmmBackward0 1"].weights, 8 * 8 + 8);
  EXPECT_EQ(work["AddmmBackward0 2"].casts, 3U);
  EXPECT_EQ(work["AddmmBackward0 2"].elements, 64);
  EXPECT_EQ(work["NativeLayerNormBackward0 1"].narrow, 0);
  EXPECT_FALSE(work.contains("SdpBackward0 1"));
}

TEST(Autocast, FrozenWeightsHaveNoGradients) {
  auto work = Ops()
                  .forward(layer())
                  .backward({{"AddmmBackward0", "[[8, 8]]", 5, "", {"aten::mm"}},
                             {"AddmmBackward0", "[[8, 24]]", 2, "", {"aten::mm"}}})
                  .work();
  EXPECT_EQ(work["aten::linear 1"].weights, 24 * 8 + 24);
  EXPECT_EQ(work["AddmmBackward0 2"].casts, 1U);
  EXPECT_EQ(work["AddmmBackward0 2"].weights, 0);
}

TEST(Autocast, OfAConvolutionalNet) {
  auto work = Ops()
                  .forward({{"aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], []]", 0},
                            {"aten::batch_norm", "[[2, 4, 8, 8], [4], [4], [4], [4]]", 1},
                            {"aten::relu_", "[[2, 4, 8, 8]]", 2},
                            {"aten::max_pool2d", "[[2, 4, 8, 8]]", 3},
                            {"aten::conv2d", "[[2, 4, 4, 4], [4, 4, 3, 3], []]", 4},
                            {"aten::batch_norm", "[[2, 4, 4, 4], [4], [4], [4], [4]]", 5},
                            {"aten::add_", "[[2, 4, 4, 4], [2, 4, 4, 4]]", 6}})
                  .backward({{"ConvolutionBackward0", "[[2, 4, 8, 8]]", 0}})
                  .work();
  EXPECT_EQ(work["aten::conv2d 1"].elements, 2 * 3 * 8 * 8);  // The images.
  EXPECT_EQ(work["ConvolutionBackward0 1"].elements, 0);      // They have no gradient.
  EXPECT_EQ(work["ConvolutionBackward0 1"].weights, 4 * 3 * 3 * 3);
  EXPECT_EQ(work["aten::conv2d 2"].casts, 1U);
  EXPECT_FALSE(work.contains("aten::batch_norm 1"));
  EXPECT_FALSE(work.contains("aten::add_ 1"));
}

TEST(Autocast, AGateIsReadWithWhatItGates) {
  auto work = Ops()
                  .forward({{"aten::add", "[[2, 4, 32], [2, 4, 32]]", 0},
                            {"aten::layer_norm", "[[2, 4, 8], [], [8], [8]]", 0},
                            {"aten::linear", "[[2, 4, 8], [32, 8]]", 1},
                            {"aten::silu", "[[2, 4, 32]]", 2},
                            {"aten::linear", "[[2, 4, 8], [32, 8]]", 3},
                            {"aten::mul", "[[2, 4, 32], [2, 4, 32]]", 4},
                            {"aten::linear", "[[2, 4, 32], [8, 32]]", 5}})
                  .work();
  EXPECT_EQ(work["aten::linear 2"].elements, 64);
  EXPECT_FALSE(work.contains("aten::mul 1"));
  EXPECT_EQ(work["aten::linear 3"].casts, 1U);
}

TEST(Autocast, LossesConvertTheirInput) {
  const std::vector<TestedOp> head = {{"aten::linear", "[[8, 4], [50, 4]]", 0},
                                      {"aten::cross_entropy_loss", "[[8, 50], [8]]", 1}};
  auto work = Ops().forward(head).backward({{"LogSoftmaxBackward0", "[[8, 50]]", 1}}).work();
  EXPECT_EQ(work["aten::cross_entropy_loss 1"].elements, 400);
  EXPECT_EQ(work["LogSoftmaxBackward0 1"].elements, 400);
  // A conversion that the program asks for has no kernel if all is in FP32.
  work =
      Ops()
          .forward(
              {head[0], {"aten::to", "[[8, 50]]", 1, R"(["", "6", "False"])", {}, false}, head[1]})
          .work();
  EXPECT_EQ(work["aten::cross_entropy_loss 1"].casts, 1U);
  EXPECT_EQ(work["aten::cross_entropy_loss 1"].elements, 400);
}

TEST(Autocast, NeedsShapes) {
  EXPECT_TRUE(Ops().forward({{"aten::linear", "", 0}}).work().empty());
  EXPECT_TRUE(Ops().forward({{"aten::linear", "[[], []]", 0}}).work().empty());
}

}  // namespace
}  // namespace foretrace
