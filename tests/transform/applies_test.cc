// To which jobs, and to what share of their work, transforms say that they apply.

#include <gtest/gtest.h>

#include "foretrace/transform.h"

namespace foretrace {
namespace {

std::string answer(const char* step, const char* graph) {
  return to_text(read_transform_text(step)->applies(parse_graph(graph)));
}

TEST(Applies, BatchesAndInputsAreOfDeepLearning) {
  for (const char* step : {"batch_size:factor=2", "sequence_length:factor=2", "prefetch"}) {
    EXPECT_EQ(answer(step, "stream: par_reduce_kernel 10, hydro_kernel 90"),
              "does not apply: no kernel is known as one of a deep learning framework or its "
              "libraries")
        << step;
    EXPECT_EQ(answer(step, "stream: sgemm 10, hydro_kernel 90"), "") << step;
  }
}

TEST(Applies, NetworksOfConvolutionsHaveNoSequences) {
  for (const char* step :
       {"sequence_length:factor=2", "tensor_parallel:gpus=2", "context_parallel:gpus=2"}) {
    EXPECT_EQ(answer(step, "stream: implicit_convolve_sgemm 40, sgemm 60, x_elementwise 100"),
              "does not apply: 40.0 % of the time of its products is in convolutions, and nothing "
              "in it is known to work on sequences")
        << step;
    EXPECT_EQ(answer(step, "stream: patch_conv 10, sgemm 90"), "") << step;
    EXPECT_EQ(answer(step, "stream: implicit_convolve_sgemm 90, flash_fwd_kernel 10"), "") << step;
    EXPECT_EQ(answer(step, "cpu: \"aten::bmm\" 1\nstream: implicit_convolve_sgemm 90, sgemm 10"),
              "")
        << step;
  }
}

TEST(Applies, InputsThatAreCopiedAheadAlready) {
  EXPECT_EQ(answer("prefetch", R"-(
    copies: "Memcpy HtoD (Pinned -> Device)":copy_in 30, "Memcpy HtoD (Pageable -> Device)":copy_in 10
    stream: "Memcpy HtoD (Pinned -> Device)":copy_in 60, sgemm 100
)-"),
            "applies to 70.0 %: 30.0 % of the time of its copies is on a stream of their own, from "
            "pinned memory, already");
}

TEST(Applies, AlmostNothingIsNotNothing) {
  EXPECT_EQ(to_text({.share = 0.0004, .why_not = "the rest is fast"}),
            "applies to less than 0.1 %: the rest is fast");
  EXPECT_EQ(to_text({.share = 0.0006, .why_not = "the rest is fast"}),
            "applies to 0.1 %: the rest is fast");
}

TEST(Applies, AMixtureHasMoreThanItsExperts) {
  const char* const graph =
      "stream: moe_gemm 10 {phase=forward}, norm 10 {phase=forward}, moe_gemm 20 {phase=backward}";
  EXPECT_TRUE(
      answer("expert_parallel", graph).starts_with("does not apply: \"where\" selects all kernels"))
      << answer("expert_parallel", graph);
  EXPECT_EQ(answer("expert_parallel:where.name=moe", graph), "");
}

TEST(Applies, AnOptimizerIsFusedOnce) {
  EXPECT_EQ(answer("fused_optimizer", "stream: multi_tensor_apply_kernel 10 {phase=update}"), "");
  EXPECT_EQ(answer("fused_optimizer", R"(
    stream: "multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>" 90 {phase=update}, multi_tensor_apply_kernel 10 {phase=update}
)"),
            "applies to 10.0 %: 90.0 % of the time of its update is in fused kernels already");
  EXPECT_EQ(answer("fused_optimizer", R"(
    stream: sgemm 50 {phase=update}, XXT_kernel 10 {phase=update}, x_elementwise 40 {phase=update}, sgemm 100
)"),
            "applies to 40.0 %: 60.0 % of the time of its update is in products and kernels of no "
            "framework, which no fused optimizer contains");
}

}  // namespace
}  // namespace foretrace
