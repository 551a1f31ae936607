#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kAttention = R"(
    s: gemm 2 {phase=forward}, softmax 2 {phase=forward}, relu 2 {phase=forward}
    s: gemm_pv 2 {phase=forward}, loss 2 {phase=forward}, b 2 {phase=backward}
    @alloc 2MiB use=parameter: .. reads gemm
    @alloc 8MiB use=activation op="aten::linear": gemm .. b writes gemm reads softmax, relu, b
    @alloc 4MiB use=activation op="aten::softmax": softmax .. b writes softmax reads gemm_pv, b
    @alloc 2MiB use=activation op="aten::relu": relu .. b writes relu reads b
    @alloc 1MiB use=activation op="aten::matmul": gemm_pv .. b writes gemm_pv reads loss, b
    @alloc 16MiB use=activation op="aten::nll_loss": loss .. b writes loss reads b
    @alloc 32MiB use=gradient: b .. writes b
)";

std::vector<std::int64_t> mebibytes_behind(std::string_view transform) {
  Graph graph = parse_graph(kAttention);
  read_transform_text(transform)->apply(graph);
  std::vector<std::int64_t> sizes;
  for (const Allocation& block : graph.allocations()) sizes.push_back(block.bytes.count >> 20);
  return sizes;
}

TEST(AmpMemory, HalvesWhatAutocastMakesInHalfPrecision) {
  // Products, and what follows them; behind the recorded ones the cast of the softmax's output and
  // those of the weights.
  EXPECT_EQ(mebibytes_behind("amp"), (std::vector<std::int64_t>{2, 4, 4, 1, 0, 16, 32, 2, 1}));
}

TEST(AmpMemory, StaysWhereItIsNotAskedFor) {
  EXPECT_EQ(mebibytes_behind("amp:memory=false"),
            (std::vector<std::int64_t>{2, 8, 4, 2, 1, 16, 32}));
}

TEST(AmpMemory, CastsOfWeightsAreGoneBehindTheForwardPass) {
  Graph graph = parse_graph(kAttention);
  read_transform_text("amp")->apply(graph);
  const Allocation& casts = graph.allocations().back();
  EXPECT_EQ(graph.name(casts.made_by), "gemm");
  EXPECT_EQ(graph.name(casts.freed_by), "gemm_pv");
}

}  // namespace
}  // namespace foretrace
