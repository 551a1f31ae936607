// Definitions and results of papers on swapping and encoding, checked on the transforms.

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

/// The block that is chosen to move out first, or the message of the Error.
std::string first_to_leave(std::string_view graph_text, const std::string& score) {
  try {
    Graph graph = parse_graph(graph_text);
    const Effect effect =
        read_transform_text("offload:host_bandwidth=1GB/s,min_bytes=1B,saved_bytes=1B,score=" +
                            score)
            ->apply(graph, {});
    for (const Figure& figure : effect.figures) {
      if (figure.name == "offloaded_bytes") return to_text(figure);
    }
    return "nothing";
  } catch (const Error& error) {
    return error.what();
  }
}

// 1 kB takes a tick each way. The small block waits 32 ticks and the large one 30, so that
//     DOA   32 - 2 = 30    >  30 - 10 = 20
//     AOA    1 * 30 = 30   <   5 * 20 = 100
TEST(AutoSwap, DoaIsFreeTimeAndAoaIsFreeTimeBySize) {
  constexpr auto kTwo = R"(
    stream: A 1, a 1, B 12, C 1, M 6, D 1, E 10, z 1, Z 1
    @alloc 1kB use=activation: A .. Z writes A reads Z
    @alloc 5kB use=activation: a .. z writes a reads z
    @alloc 2kB use=temporary: M .. D writes M
)";
  EXPECT_EQ(first_to_leave(kTwo, "doa"), "1 kB");
  EXPECT_EQ(first_to_leave(kTwo, "aoa"), "5 kB");
}

// The block of 3 kB waits longer (26 ticks instead of 22, or 20 instead of 18 of free time); the
// one of 2 kB waits after the peak, where much is in use: the areas under the curve are about 300
// and 500 kB ticks.
TEST(AutoSwap, WdoaIsTheAreaUnderTheLoadBetweenTheAccesses) {
  constexpr auto kTwo = R"(
    stream: A 1, B 14, C 1, G 3, M 4, Q 4, P 1, H 10, R 1, X 1
    @alloc 3kB use=activation: A .. P writes A reads P
    @alloc 2kB use=activation: C .. R writes C reads R
    @alloc 30kB use=temporary: M .. Q writes M
    @alloc 20kB use=temporary: Q .. X writes Q
)";
  EXPECT_EQ(first_to_leave(kTwo, "doa"), "3 kB");
  EXPECT_EQ(first_to_leave(kTwo, "aoa"), "3 kB");
  EXPECT_EQ(first_to_leave(kTwo, "wdoa"), "2 kB");
  EXPECT_EQ(first_to_leave(kTwo, "swdoa"), "2 kB");
}

// Capuchin: swapping is free if FT = SwapInStart - SwapOutEnd >= 0. Here a wait of 8 ticks.
TEST(Capuchin, SwappingIsFreeWhereFreeTimeIsNotNegative) {
  const auto of_size = [](const char* bytes) {
    return "stream: A 1, B 3, M 2, C 3, Z 1\n@alloc " + std::string(bytes) +
           " use=activation: A .. Z writes A reads Z\n@alloc 9kB use=temporary: M .. C writes M\n";
  };
  EXPECT_EQ(first_to_leave(of_size("3kB"), "doa"), "3 kB");   // Out by 4, in from 6: FT = 2.
  EXPECT_EQ(first_to_leave(of_size("4001B"), "doa"), "0 B");  // FT = -2 ns.
}

// Gist: rows of 256 columns need an index of one byte, so a value of four bytes takes five, and csr
// pays above 20 % of zeros.
TEST(Gist, CsrPaysAboveAFifthOfZeros) {
  const auto encoded = [](const std::string& sparsity) {
    Graph graph = parse_graph(R"(
      cpu:    L:launch 1 {phase=forward}, M:launch 1 {phase=forward}, N:launch 1 {phase=backward}
      stream: relu 2 {phase=forward}, conv 2 {phase=forward}, "dgrad" 2 {phase=backward}
      L -> relu
      M -> conv
      N -> dgrad
      @alloc 1800000B use=activation op="aten::relu": L .. writes relu reads conv, dgrad
)");
    try {
      read_transform_text("encode:device=v100-pcie-16gb,sparsity=" + sparsity)->apply(graph, {});
      return to_text(graph.allocations().back().bytes);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(encoded("0.19"), "mode: lossless encodes none of 1 activation");
  EXPECT_EQ(encoded("0.2"), "mode: lossless encodes none of 1 activation");
  EXPECT_EQ(encoded("0.21"), to_text(Bytes{1'777'500}));  // 0.79 * 450,000 * 5.
}

}  // namespace
}  // namespace foretrace
