#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// Scores are 4 heads x 128 x 128; everything else has a row of 64 numbers for each of 128
// positions. The update needs a temporary block of the size of a parameter, and so does the
// backward pass.
constexpr auto kModel = R"(
    s: qkv 4 {phase=forward}, scores 3 {phase=forward}, soft 2 {phase=forward}, out 4 {phase=forward}, b 8 {phase=backward}, u 3 {phase=update}
    @alloc 65536B use=parameter: .. reads qkv
    @alloc 32768B use=activation op="aten::linear": qkv .. b writes qkv reads scores
    @alloc 262144B use=activation op="aten::bmm": scores .. b writes scores reads soft
    @alloc 262144B use=activation op="aten::softmax": soft .. b writes soft reads out
    @alloc 32768B use=activation op="aten::linear": out .. b writes out
    @alloc 262144B use=temporary: b .. b
    @alloc 65536B use=temporary: b .. b
    @alloc 65536B use=gradient: b .. u writes b
    @alloc 65536B use=temporary: u .. u
)";

std::vector<std::int64_t> kibibytes_behind(std::string_view transform,
                                           std::string_view graph_text = kModel) {
  Graph graph = parse_graph(graph_text);
  read_transform_text(transform)->apply(graph, {});
  std::vector<std::int64_t> sizes;
  for (const Allocation& block : graph.allocations()) sizes.push_back(block.bytes.count >> 10);
  return sizes;
}

TEST(SequenceLength, ScoresGrowWithTheSquareAndWeightsNotAtAll) {
  EXPECT_EQ(kibibytes_behind("sequence_length:factor=2"),
            (std::vector<std::int64_t>{64, 64, 1024, 1024, 64, 1024, 64, 64, 64}));
  EXPECT_EQ(kibibytes_behind("sequence_length:from=128,to=64"),
            (std::vector<std::int64_t>{64, 16, 64, 64, 16, 64, 64, 64, 64}));
}

// 262144 bytes are not a multiple of 100 x 100, so the output of softmax has no scores of pairs.
TEST(SequenceLength, ScoresAreAMultipleOfTheSquareOfTheLength) {
  EXPECT_EQ(kibibytes_behind("sequence_length:from=100,to=200"),
            (std::vector<std::int64_t>{64, 64, 512, 512, 64, 512, 64, 64, 64}));
}

TEST(SequenceLength, WhatALinearLayerMakesInThatSizeIsNoScores) {
  EXPECT_EQ(kibibytes_behind("sequence_length:factor=2", R"(
    s: a 1 {phase=forward}, c 1 {phase=forward}, b 1 {phase=backward}
    @alloc 4096B use=activation op="aten::softmax": a .. b
    @alloc 4096B use=activation op="aten::linear": c .. b
)"),
            (std::vector<std::int64_t>{8, 8}));
}

// 4 heads of 16 x 16 are as large as a layer of 16 x 64, so only the place tells them apart.
TEST(SequenceLength, OfBlocksOfOneSizeThoseOfAttentionsSoftmaxAreScores) {
  EXPECT_EQ(kibibytes_behind("sequence_length:factor=2", R"(
    s: a 1 {phase=forward}, d 1 {phase=forward}, c 1 {phase=forward}, b 1 {phase=backward}
    @alloc 4096B use=activation op="aten::exp" stack=":0 at::exp;/m/nn.py:6 softmax;/m/net.py:9 attention": a .. b
    @alloc 4096B use=activation op="aten::div" stack="/m/net.py:8 attention": d .. b
    @alloc 4096B use=activation op="aten::linear" stack="/m/net.py:20 feed_forward": c .. b
    @alloc 4096B use=temporary: b .. b
)"),
            (std::vector<std::int64_t>{16, 16, 8, 8}));
}

TEST(SequenceLength, KernelsOfScoresTakeLongerByTheSquare) {
  EXPECT_EQ(simulated(R"(
      s: x 1 {phase=forward}, gemm 3 {phase=forward}, flash 3 {phase=forward}, u 2 {phase=update}
  )",
                      R"({"use": "sequence_length", "factor": 2})"),
            R"(
s |xgggggfffffffffuu|
)");
}

TEST(SequenceLength, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "sequence_length", "from": 128})", "to: must be given together with from"},
      {R"({"use": "sequence_length", "factor": 2, "from": 128, "to": 256})",
       "factor: cannot be given together with from and to"},
      {R"({"use": "sequence_length", "from": 1, "to": 100000})",
       "to: must be within a factor of 10000 of from"},
      {R"({"use": "sequence_length", "from": 10000000000, "to": 10000000000})",
       "from: must be at most 1000000000, and so must to"},
  };
  for (const auto& [transform, message] : cases)
    EXPECT_EQ(simulated(kModel, transform), message) << transform;
  EXPECT_EQ(simulated("cpu: a:host 1", R"({"use": "sequence_length"})"),
            "factor: this trace has no kernels and no memory that depend on a sequence");
}

}  // namespace
}  // namespace foretrace
