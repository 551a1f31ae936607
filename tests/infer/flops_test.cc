// The arithmetic operations of ops, computed from their shapes.

#include <gtest/gtest.h>

#include "infer/recording.h"

namespace foretrace {
namespace {

/// The only kernel, which an op with these shapes and values launches.
Task kernel_of(std::string_view op, std::string_view shapes, std::string_view values = "") {
  Recording run;
  run.op(0, op, 0, 10).call(0, "launch", 1, 1, 1).kernel(0, "k", 6, 2, 1);
  Trace& trace = run.trace();
  trace.op_details.push_back(
      {.shapes = trace.names.intern(shapes), .values = trace.names.intern(values)});
  trace.hosts[0].details = 0;
  const Graph graph = infer(trace).graph;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.task(TaskId{i}).kind == TaskKind::kernel) return graph.task(TaskId{i});
  }
  return {.flops = -1};
}

double flops_of(std::string_view op, std::string_view shapes, std::string_view values = "") {
  return kernel_of(op, shapes, values).flops;
}

TEST(Flops, OfProductsOfMatrices) {
  EXPECT_EQ(flops_of("aten::mm", "[[4, 8], [8, 16]]"), 2 * 4 * 8 * 16);
  EXPECT_EQ(flops_of("aten::addmm", "[[16], [4, 8], [8, 16]]"), 2 * 4 * 8 * 16);
  EXPECT_EQ(flops_of("aten::bmm", "[[3, 4, 8], [3, 8, 16]]"), 2 * 3 * 4 * 8 * 16);
  EXPECT_EQ(flops_of("aten::baddbmm", "[[3, 4, 16], [3, 4, 8], [3, 8, 16]]"), 2 * 3 * 4 * 8 * 16);
  EXPECT_EQ(flops_of("aten::linear", "[[2, 4, 8], [16, 8]]"), 2 * 2 * 4 * 8 * 16);
}

TEST(Flops, ProductsHaveAnInnerSize) {
  EXPECT_EQ(kernel_of("aten::addmm", "[[16], [4, 8], [8, 16]]").inner, 8);
  EXPECT_EQ(kernel_of("aten::bmm", "[[3, 4, 8], [3, 8, 16]]").inner, 8);
  EXPECT_EQ(kernel_of("aten::linear", "[[2, 4, 8], [16, 8]]").inner, 8);
  EXPECT_EQ(kernel_of("aten::convolution", "[[2, 3, 8, 8], [5, 3, 3, 3], []]").inner, 0);
}

// 2 images of 8 x 8 pixels, 3 channels to 5: two operations for each weight and each place of the
// result.
TEST(Flops, OfConvolutionsByStridePaddingAndDilation) {
  const std::string shapes = "[[2, 3, 8, 8], [5, 3, 3, 3], []]";
  const auto flops = [&](const std::string& stride, const std::string& padding,
                         const std::string& dilation) {
    const auto pair = [](const std::string& size) { return "\"[" + size + ", " + size + "]\""; };
    return flops_of("aten::convolution", shapes,
                    R"(["", "", "", )" + pair(stride) + ", " + pair(padding) + ", " +
                        pair(dilation) + R"(, "False", "[0, 0]", "1"])");
  };
  const double each = 2.0 * (5 * 3 * 3 * 3) * 2;
  EXPECT_EQ(flops("1", "0", "1"), each * 6 * 6);
  EXPECT_EQ(flops("1", "1", "1"), each * 8 * 8);
  EXPECT_EQ(flops("2", "0", "1"), each * 3 * 3);
  EXPECT_EQ(flops("1", "0", "2"), each * 4 * 4);
}

}  // namespace
}  // namespace foretrace
