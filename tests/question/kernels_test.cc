#include "foretrace/question/kernels.h"

#include <gtest/gtest.h>

#include <map>

#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// An op with shapes that launches a kernel, twice: events of the PyTorch profiler.
std::string events(const std::string& op, const std::string& shapes, const std::string& kernel,
                   int at, int duration, const std::string& values = "[]") {
  const std::string begin = std::to_string(at), id = std::to_string(at + 1);
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + op + R"(", "pid": 1, "tid": 1, "ts": )" +
         begin + R"(, "dur": 4, "args": {"Input Dims": )" + shapes + R"(, "Concrete Inputs": )" +
         values + R"(}},)" +
         R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": )" +
         id + R"(, "dur": 1, "args": {"correlation": )" + id + R"(}},)" +
         R"({"ph": "X", "cat": "kernel", "name": ")" + kernel + R"(", "pid": 0, "tid": 7, "ts": )" +
         std::to_string(at + 10) + R"(, "dur": )" + std::to_string(duration) +
         R"(, "args": {"device": 0, "stream": 7, "correlation": )" + id + "}}";
}

class KernelTable : public testing::Test {
 protected:
  KernelReport measured(const std::string& machine) {
    folder_.write(
        "job.json",
        R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}], "traceEvents": [)" +
            events("aten::mm", "[[1024, 512], [512, 2048]]", "ampere_bf16_s16816gemm_bf16", 100,
                   20) +
            "," +
            events("aten::mm", "[[1024, 512], [512, 2048]]", "ampere_bf16_s16816gemm_bf16", 200,
                   30) +
            "," + events("aten::relu", "[[64]]", "elementwise_kernel", 300, 40) + "]}");
    return measure_kernels(folder_ / "job.json", machine);
  }

  Folder folder_;
};

TEST_F(KernelTable, AreComparedWithTheRoofline) {
  const KernelReport report = measured("");
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.device, "a100-sxm4-80gb");
  EXPECT_EQ(report.all, std::chrono::microseconds(90));
  EXPECT_EQ(report.known, std::chrono::microseconds(50));
  const KernelRow& product = report.rows[0];
  EXPECT_EQ(product.op, "aten::mm");
  EXPECT_EQ(product.shapes, "[[1024, 512], [512, 2048]]");
  EXPECT_DOUBLE_EQ(product.count, 2);
  EXPECT_DOUBLE_EQ(product.flops, 2.0 * 1024 * 512 * 2048);
  EXPECT_EQ(product.each, std::chrono::microseconds(25));
  // 2.147 GFLOP take 6.883 us at 312 TFLOP/s, longer than reading 3.1 MB.
  EXPECT_NEAR(product.of_roofline, 2.0 * 1024 * 512 * 2048 / 312e12 / 25e-6, 1e-9);
  EXPECT_EQ(product.arithmetic, "16 bits");
  EXPECT_EQ(report.rows[1].of_roofline, 0);
  EXPECT_EQ(report.rows[1].op, "aten::relu");
}

TEST_F(KernelTable, AreComparedWithAnotherDevice) {
  const KernelReport report = measured("h100-sxm5-80gb");
  EXPECT_EQ(report.device, "h100-sxm5-80gb");
  EXPECT_LT(report.of_roofline, measured("").of_roofline);
  EXPECT_THROW(measured("h1000"), Error);
}

TEST_F(KernelTable, ThatAreFasterThanTheDeviceAreNotKnown) {
  // 2.147 GFLOP in 25 us are 86 TFLOP/s, more than a T4 does.
  const KernelReport report = measured("t4");
  EXPECT_EQ(report.impossible, 1);
  EXPECT_EQ(report.known, std::chrono::microseconds(0));
  EXPECT_EQ(report.of_roofline, 0);
}

TEST(Kernels, WhoseNamesDoNotSayTheirArithmeticHaveNoPeak) {
  const Folder folder;
  folder.write(
      "job.json",
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}], "traceEvents": [)" +
          events("aten::mm", "[[1024, 512], [512, 2048]]", "triton_mm_0", 100, 20) + "]}");
  const KernelReport report = measure_kernels(folder / "job.json", "");
  EXPECT_EQ(report.rows[0].arithmetic, "");
  EXPECT_EQ(report.rows[0].of_roofline, 0);
  EXPECT_GT(report.rows[0].flops, 0);
}

TEST(Kernels, OfAttentionHaveARateIfTheyAreKnownToBeCausalOrNot) {
  const auto rate = [](const std::string& causal) {
    const Folder folder;
    const std::string values =
        R"(["", "", "", "", "", "64", "64", "0.", ")" + causal + R"(", "False"])";
    folder.write("job.json", R"({"schemaVersion": 1, "traceEvents": [)" +
                                 events("aten::_flash_attention_forward",
                                        "[[2, 64, 4, 16], [2, 64, 4, 16], [2, 64, 4, 16]]",
                                        "pytorch_flash::flash_fwd_kernel", 100, 20, values) +
                                 "]}");
    return measure_kernels(folder / "job.json", "h100-sxm5-80gb").rows[0].flops;
  };
  EXPECT_EQ(rate("False"), 2 * 2.0 * 2 * 4 * 64 * 64 * 16);
  EXPECT_EQ(rate("True"), rate("False") / 2);
  EXPECT_EQ(rate(""), 0);
}

TEST(Kernels, OfTheGradientsOfAConvolutionHaveARateEach) {
  const Folder folder;
  const std::string op = "aten::convolution_backward",
                    shapes = "[[2, 5, 8, 8], [2, 3, 8, 8], [5, 3, 3, 3], [], [], [], [], [], []]";
  const std::string values =
      R"(["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1",
          "[True, True, False]"])";
  folder.write("job.json", R"({"schemaVersion": 1, "traceEvents": [)" +
                               events(op, shapes, "cudnn::wgrad_alg0", 100, 30, values) + "," +
                               events(op, shapes, "cudnn::dgrad_alg0", 200, 20, values) + "," +
                               events(op, shapes, "cudnn::winograd_nonfused_conv", 300, 5, values) +
                               "]}");
  std::map<std::string, double> flops;
  for (const KernelRow& row : measure_kernels(folder / "job.json", "").rows)
    flops[row.kernel] = row.flops;
  const double each = 2.0 * 2 * 8 * 8 * 5 * 3 * 3 * 3;
  EXPECT_EQ(flops["cudnn::wgrad_alg0"], each);
  EXPECT_EQ(flops["cudnn::dgrad_alg0"], each);
  EXPECT_EQ(flops["cudnn::winograd_nonfused_conv"], 0);
}

TEST(Kernels, ARecordingWithoutThemIsRefused) {
  const Folder folder;
  folder.write("cpu.json",
               R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a",
                   "pid": 1, "tid": 1, "ts": 1, "dur": 4}]})");
  EXPECT_THROW(measure_kernels(folder / "cpu.json", ""), TraceError);
}

}  // namespace
}  // namespace foretrace
