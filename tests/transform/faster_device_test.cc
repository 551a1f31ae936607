#include <gtest/gtest.h>

#include "base/numbers/scaling.h"
#include "foretrace/machine.h"
#include "machine/operation_rates.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

double factor_of(const char* task, const char* step) {
  Graph graph = parse_graph("stream: " + std::string(task) + " 1000");
  read_transform_text(step)->apply(graph, {});
  return static_cast<double>(graph.task(TaskId{0}).duration.count()) / 1e6;
}

constexpr auto kUpgrade = "faster_device:from=v100-sxm2-32gb,to=a100-sxm4-40gb";

/// The factor of 1 ms of work by the rates of the two devices of kUpgrade.
double by_rates(OperationKind operation, Arithmetic arithmetic, bool by_arithmetic) {
  const auto of = [&](const char* device) {
    return rate_of(find_device(device), operation, arithmetic);
  };
  return static_cast<double>(
             time_at(1ms, of("v100-sxm2-32gb"), of("a100-sxm4-40gb"), by_arithmetic).count()) /
         1e6;
}

// Data sheets: FP32 15.7 and 19.5 TFLOP/s, FP16 125 and 312 TFLOP/s, memory 900 and 1555 GB/s.
// Rates of all devices and of Ampere's differ by little.
TEST(FasterDevice, FollowsTheRoofline) {
  const double single = factor_of("volta_sgemm_128x64_nn", kUpgrade);
  EXPECT_DOUBLE_EQ(single, by_rates(OperationKind::product, Arithmetic::fp32, true));
  EXPECT_NEAR(single, 15.7 / 19.5, 0.05);
  const double half = factor_of("volta_fp16_s884gemm_fp16_128x64_nn", kUpgrade);
  EXPECT_DOUBLE_EQ(half, by_rates(OperationKind::product, Arithmetic::half, true));
  EXPECT_NEAR(half, 125.0 / 312, 0.05);
  const double memory = factor_of("vectorized_elementwise_kernel", kUpgrade);
  EXPECT_DOUBLE_EQ(memory, by_rates(OperationKind::stream, Arithmetic::half, false));
  EXPECT_NEAR(memory, 900.0 / 1555, 0.05);
  EXPECT_NEAR(factor_of("flash_fwd_kernel_fp16", kUpgrade),
              by_rates(OperationKind::attention, Arithmetic::half, true), 1e-9);
  EXPECT_NEAR(factor_of("x:copy_on_device", kUpgrade), 900.0 / 1555, 0.01);
}

// 1 GFLOP explains 11 us of 1 ms on a V100: a product with few rows reads its weights.
TEST(FasterDevice, AProductWithFewOperationsIsBoundByMemory) {
  Graph graph = parse_graph("stream: volta_fp16_s884gemm_fp16_128x64_nn 1000");
  graph.task(TaskId{0}).flops = 1e9;
  const Effect effect = read_transform_text(kUpgrade)->apply(graph, {});
  EXPECT_DOUBLE_EQ(static_cast<double>(graph.task(TaskId{0}).duration.count()) / 1e6,
                   by_rates(OperationKind::product, Arithmetic::half, false));
  EXPECT_NE(effect.summary.find("0 kernels by arithmetic, 1 by memory"), std::string::npos)
      << effect.summary;
}

TEST(FasterDevice, SaysHowFarItsTimesAreTypicallyOff) {
  Graph graph = parse_graph("stream: sgemm 1000");
  const Effect near =
      read_transform_text("faster_device:from=h100-sxm5-80gb,to=h200-sxm5-141gb")->apply(graph, {});
  EXPECT_GT(near.times_error.share, 0);
  EXPECT_EQ(near.times_error.text, "rates of operations on h100-sxm5-80gb and h200-sxm5-141gb");
  const Effect far =
      read_transform_text("faster_device:from=h100-sxm5-80gb,to=mi300x")->apply(graph, {});
  EXPECT_NE(far.assumptions.at(0).find("not all of that was measured"), std::string::npos);
}

// PCIe 3 and 5: the faster memory of the device does not count.
TEST(FasterDevice, CopiesFromTheHostFollowTheLink) {
  const auto link = [](const char* name) { return find_device(name).host_link.bytes_per_second; };
  const double factor = link("v100-sxm2-32gb") / link("h100-sxm5-80gb");
  EXPECT_LT(factor, 0.5);
  constexpr auto kToHopper = "faster_device:from=v100-sxm2-32gb,to=h100-sxm5-80gb";
  EXPECT_NEAR(factor_of("x:copy_in", kToHopper), factor, 0.001);
  EXPECT_NEAR(factor_of("x:copy_out", kToHopper), factor, 0.001);
}

// TF32 156 TFLOP/s on the A100, none on the V100.
TEST(FasterDevice, ConvolutionsGoToTensorCoresThatTheOldDeviceLacks) {
  constexpr auto kConvolution = "volta_scudnn_128x64_relu_interior_nn_v1";
  EXPECT_NEAR(factor_of(kConvolution, kUpgrade), 0.715 * 15.7 / 78, 0.02);
  EXPECT_NEAR(factor_of(kConvolution,
                        "faster_device:from=v100-sxm2-32gb,to=a100-sxm4-40gb,"
                        "tf32_convolutions=false"),
              15.7 / 19.5, 0.05);
  EXPECT_NEAR(factor_of("ampere_scudnn_128x64_relu_interior_nn_v1",
                        "faster_device:from=a100-sxm4-40gb,to=h100-sxm5-80gb"),
              19.5 / 66.9, 0.05);
}

TEST(FasterDevice, ConvolutionsThatWentToTensorCoresComeBack) {
  Graph graph = parse_graph("stream: volta_scudnn_128x64_relu_interior_nn_v1 1000");
  graph.device_names().emplace_back("Tesla V100-SXM2-32GB");
  read_transform_text("faster_device:to=a100-sxm4-40gb")->apply(graph, {});
  EXPECT_LT(graph.task(TaskId{0}).duration, 200us);
  const DeviceModel now = find_device("a100-sxm4-40gb");
  read_transform_text("faster_device:to=v100-sxm2-32gb")->apply(graph, {.machine = &now});
  EXPECT_NEAR(static_cast<double>(graph.task(TaskId{0}).duration.count()), 1e6, 10);
}

TEST(FasterDevice, TheSameDeviceChangesNothing) {
  EXPECT_EQ(
      factor_of("volta_sgemm_128x64_nn", "faster_device:from=v100-sxm2-32gb,to=v100-sxm2-32gb"), 1);
}

TEST(FasterDevice, HostAndCollectivesStay) {
  EXPECT_EQ(simulated("cpu: h:host 4\nstream: c:collective 4, ncclDevKernel_SendRecv 4",
                      R"({"use": "faster_device", "from": "v100-sxm2-32gb",
                      "to": "a100-sxm4-40gb"})"),
            R"(
cpu    |hhhh....|
stream |ccccnnnn|
)");
}

// Measured: kernels that hardly do anything take 1.4 times as long on an MI300X as on an H100.
TEST(FasterDevice, AKernelThatHardlyWorksChangesAsAStartDoes) {
  const auto start = [](const char* device) {
    return rate_of(find_device(device), OperationKind::stream, Arithmetic::half).start;
  };
  Graph graph = parse_graph("stream: vectorized_elementwise_kernel 2");
  read_transform_text("faster_device:from=h100-sxm5-80gb,to=mi300x")->apply(graph, {});
  const double factor = static_cast<double>(graph.task(TaskId{0}).duration.count()) / 2e3;
  EXPECT_NEAR(factor, ratio(start("mi300x"), start("h100-sxm5-80gb")), 1e-3);
  EXPECT_NEAR(factor, 1.4, 0.15);
}

TEST(FasterDevice, TakesTheRecordedDeviceAsFrom) {
  Graph graph = parse_graph("stream: vectorized_elementwise_kernel 1000");
  graph.device_names() = {"Tesla V100-SXM2-32GB"};
  read_transform_text("faster_device:to=a100-sxm4-40gb")->apply(graph, {});
  EXPECT_NEAR(static_cast<double>(graph.task(TaskId{0}).duration.count()), 1e6 * 900.0 / 1555, 5e4);
}

TEST(FasterDevice, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "faster_device"})",
       "to: must be the name of a device or the path of its machine file"},
      {R"({"use": "faster_device", "to": "a100-sxm4-40gb"})",
       "from: must be given, as the trace does not say what device it was recorded on"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated("stream: A 1", transform), message);
  }
  EXPECT_EQ(simulated("stream: A 1",
                      R"({"use": "faster_device", "from": "a1000", "to": "a100-sxm4-40gb"})")
                .substr(0, 6),
            "from: ");
}

TEST(FasterDevice, DoubtsWhatBoundsProductsWithoutShapes) {
  const auto changed = [](double flops) {
    Graph graph = parse_graph("stream: bf16_gemm 1000");
    graph.task(TaskId{0}).flops = flops;
    return read_transform_text("faster_device:from=h100-sxm5-80gb,to=rtx-4090")->apply(graph, {});
  };
  const Effect unknown = changed(0), known = changed(500e9);
  ASSERT_EQ(unknown.doubts.size(), 1U);
  EXPECT_TRUE(unknown.doubts[0].starts_with("kernels without recorded shapes take"));
  EXPECT_EQ(unknown.notes.count("kernels without recorded shapes, taken to be bound by arithmetic"),
            1);
  EXPECT_TRUE(known.doubts.empty());
  EXPECT_GT(unknown.times_error.share, known.times_error.share);
}

}  // namespace
}  // namespace foretrace
