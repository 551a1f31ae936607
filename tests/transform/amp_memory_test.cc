#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kAmpAttention = R"(
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

std::vector<std::int64_t> mebibytes_behind(std::string_view transform,
                                           std::string_view graph_text = kAmpAttention) {
  Graph graph = parse_graph(graph_text);
  read_transform_text(transform)->apply(graph, {});
  std::vector<std::int64_t> sizes;
  for (const Allocation& block : graph.allocations()) sizes.push_back(block.bytes.count >> 20);
  return sizes;
}

TEST(AmpMemory, HalvesWhatAutocastMakesInHalfPrecision) {
  // Products and the ops after them; after the recorded ones, the cast of the softmax's output and
  // those of the weights.
  EXPECT_EQ(mebibytes_behind("amp"), (std::vector<std::int64_t>{2, 4, 4, 1, 0, 16, 32, 2, 1}));
}

// A library sets a result to zero before kernels add their parts to it.
TEST(AmpMemory, FillBeforeAKernelDoesNotKeepABlockWhole) {
  EXPECT_EQ(mebibytes_behind("amp", R"(
    s: zero:fill 1 {phase=forward}, gemm 2 {phase=forward}, b 2 {phase=backward}
    @alloc 8MiB use=activation op="aten::linear": zero .. b writes zero, gemm reads b
)"),
            (std::vector<std::int64_t>{4}));
}

// Where no block shows its use, the peak may fall to half or stay.
TEST(AmpMemory, BlocksOfUnknownUseLeaveTheirShrinkingOpen) {
  Graph graph = parse_graph(R"(
    s: gemm 2 {phase=forward}, b 2 {phase=backward}
    @alloc 8MiB: gemm .. b
)");
  const Effect effect = read_transform_text("amp")->apply(graph, {});
  ASSERT_FALSE(effect.figures.empty());
  EXPECT_EQ(effect.figures.back().name, "not_halved");
  EXPECT_EQ(std::get<Bytes>(effect.figures.back().value), Bytes{8 << 20});
}

TEST(AmpMemory, StaysWhereItIsNotAskedFor) {
  EXPECT_EQ(mebibytes_behind("amp:memory=false"),
            (std::vector<std::int64_t>{2, 8, 4, 2, 1, 16, 32}));
}

TEST(AmpMemory, CastsOfWeightsAreGoneBehindTheForwardPass) {
  Graph graph = parse_graph(kAmpAttention);
  read_transform_text("amp")->apply(graph, {});
  const Allocation& casts = graph.allocations().back();
  EXPECT_EQ(graph.name(casts.made_by), "gemm (half)");
  EXPECT_EQ(graph.name(casts.freed_by), "gemm_pv (half)");
}

TEST(AmpMemory, CastsOfWeightsAreKeptForTheBackwardPassThatReadsThem) {
  Graph graph = parse_graph(R"(
    s: gemm 2 {phase=forward}, relu 2 {phase=forward}, b 2 {phase=backward}, c 2 {phase=backward}
    @alloc 2MiB use=parameter: .. reads gemm, b
    @alloc 8MiB use=activation op="aten::linear": gemm .. b writes gemm reads relu, b
  )");
  read_transform_text("amp")->apply(graph, {});
  EXPECT_EQ(graph.name(graph.allocations().back().freed_by), "b (half)");
}

// A snapshot, in which nobody knows who reads what. The gradient of the logits has the size of the
// logits and is halved with them; that of the exponentials stays as they do.
constexpr auto kSnapshot = R"(
    @step one
    @step two
    host: l:host 1 {phase=forward step=0}, e:host 1 {phase=forward step=0}, g:host 1 {phase=backward step=0}, h:host 1 {phase=backward step=0}, m:host 1 {phase=forward step=1}, n:host 1 {phase=backward step=1}, o:host 1
    @alloc 2MiB use=parameter: ..
    @alloc 8MiB use=activation op="aten::linear": l .. g
    @alloc 4MiB use=activation op="aten::exp": e .. h
    @alloc 8MiB use=temporary op="aten::slice_backward": g .. h
    @alloc 4MiB use=temporary op="aten::mul": h .. n
    @alloc 8MiB use=activation op="aten::linear": m .. n
    @alloc 8MiB use=temporary op="aten::linear": o .. o
)";

TEST(AmpMemory, AGradientHasTheTypeOfWhatItIsTheGradientOf) {
  EXPECT_EQ(mebibytes_behind("amp", kSnapshot),
            (std::vector<std::int64_t>{2, 4, 4, 4, 4, 4, 4, 1, 1}));
}

TEST(AmpMemory, WeightsAreCastOnceAtATime) {
  Graph graph = parse_graph(kSnapshot);
  read_transform_text("amp")->apply(graph, {});
  ASSERT_EQ(graph.allocations().size(), 9U);
  EXPECT_EQ(graph.name(graph.allocations()[7].made_by), "l");
  EXPECT_EQ(graph.name(graph.allocations()[8].made_by), "m");
}

TEST(AmpMemory, SaysWhereWeightsAreUnknown) {
  Graph graph = parse_graph(R"(
    host: l:host 1 {phase=forward}
    @alloc 2MiB: ..
    @alloc 8MiB use=activation op="aten::linear": l ..
  )");
  const Effect effect = read_transform_text("amp")->apply(graph, {});
  ASSERT_EQ(effect.notes.all().size(), 1U);
  EXPECT_EQ(effect.notes.all()[0].example, "2.097 MB");
}

}  // namespace
}  // namespace foretrace
