#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// A device of 900 GB/s takes at least a tick to read a whole block of 900 kB and write its encoded
// form.
constexpr auto kReluAndConvolution = R"(
    cpu:    L:launch 1 {phase=forward}, M:launch 1 {phase=forward}, N:launch 1 {phase=backward}
    stream: relu 2 {phase=forward}, conv 2 {phase=forward}, "dgrad" 2 {phase=backward}
    L -> relu
    M -> conv
    N -> dgrad
    @alloc 1800000B use=activation op="aten::relu": L .. writes relu reads conv, dgrad
)";

TEST(Encode, Baseline) {
  EXPECT_EQ(simulated(kReluAndConvolution), R"(
cpu    |LMN....|
stream |.rrccdd|
)");
}

TEST(Encode, EncodesBehindTheForwardUseAndDecodesInFrontOfTheBackwardOne) {
  Graph graph = parse_graph(kReluAndConvolution);
  const Effect effect =
      read_transform_text("encode:mode=lossy,precision=fp16,device=v100-pcie-16gb,launch=1us")
          ->apply(graph, {});
  // Encoding and decoding both read one form and write the other: 2.7 MB at 900 GB/s take 3us.
  EXPECT_EQ("\n" + to_ascii(graph, simulate(graph)), R"(
cpu    |LMllN........|
stream |.rrcceeeddddd|
)");
  ASSERT_EQ(graph.allocations().size(), 3U);
  const std::vector<Allocation>& blocks = graph.allocations();
  EXPECT_EQ(graph.name(blocks[0].freed_by), "launch encode");
  EXPECT_EQ(blocks[1].bytes, blocks[0].bytes);
  EXPECT_EQ(graph.name(blocks[1].made_by), "launch decode");
  EXPECT_EQ(blocks[2].bytes, Bytes{900'000});
  EXPECT_EQ(graph.name(blocks[2].made_by), "launch encode");
  EXPECT_EQ(graph.name(blocks[2].freed_by), "launch decode");
}

Bytes encoded(std::string_view graph_text, std::string_view settings) {
  Graph graph = parse_graph(graph_text);
  read_transform_text("encode:device=v100-pcie-16gb," + std::string(settings))->apply(graph, {});
  return graph.allocations().back().bytes;
}

TEST(Encode, SizesAreThoseOfTheFormats) {
  // 450,000 values; each one that is not zero takes five bytes, or three in half precision.
  EXPECT_EQ(encoded(kReluAndConvolution, "sparsity=0.8"), Bytes{450'000});
  EXPECT_EQ(encoded(kReluAndConvolution, "sparsity=0.8,mode=all"), Bytes{270'000});
  EXPECT_EQ(encoded(kReluAndConvolution, "mode=lossy,precision=fp10"), Bytes{600'000});
  EXPECT_EQ(encoded(kReluAndConvolution, "mode=lossy,precision=fp8"), Bytes{450'000});
}

TEST(Encode, WhatOnlyReluLooksAtIsABitPerValueAndReadAsItIs) {
  constexpr auto kOnlyRelu = R"(
    stream: relu 2 {phase=forward}, conv 2 {phase=forward}, threshold_backward 2 {phase=backward}
    @alloc 1800000B use=activation op="aten::relu": relu .. writes relu reads conv, threshold_backward
  )";
  EXPECT_EQ(encoded(kOnlyRelu, "mode=lossless"), Bytes{56'250});
  EXPECT_EQ(simulated(kOnlyRelu, R"({"use": "encode", "device": "v100-pcie-16gb"})"), R"(
stream |rrcceett|
)");
}

TEST(Encode, PlacesOfAPoolingTakeFourBits) {
  EXPECT_EQ(encoded(R"(
    stream: max_pool 2 {phase=forward}, max_pool_backward 2 {phase=backward}
    @alloc 1600000B use=activation: max_pool .. writes max_pool reads max_pool_backward
  )",
                    "mode=lossless"),
            Bytes{100'000});
}

TEST(Encode, SaysWhatIsWrong) {
  EXPECT_EQ(simulated(kReluAndConvolution,
                      R"({"use": "encode", "device": "v100-pcie-16gb", "sparsity": 0.2})"),
            "mode: lossless encodes none of 1 activation");
  EXPECT_EQ(simulated(kReluAndConvolution, R"({"use": "encode"})"),
            "device: must be given, as the trace does not say what device it was recorded on");
  EXPECT_EQ(simulated("s: A 1\n@alloc 1MB use=activation: A ..\n", R"({"use": "encode"})"),
            "this trace does not show which tasks use the 1 allocation of \"where\"");
}

}  // namespace
}  // namespace foretrace
