#include <gtest/gtest.h>

#include "foretrace/machine.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

double factor_of(const char* task, const char* step) {
  Graph graph = parse_graph("stream: " + std::string(task) + " 1000");
  read_transform_text(step)->apply(graph, {});
  return static_cast<double>(graph.task(TaskId{0}).duration.count()) / 1e6;
}

constexpr auto kUpgrade = "faster_device:from=v100-sxm2-32gb,to=a100-sxm4-40gb";

// Data sheets: FP32 15.7 and 19.5 TFLOP/s, FP16 125 and 312 TFLOP/s, memory 900 and 1555 GB/s.
TEST(FasterDevice, FollowsTheRoofline) {
  EXPECT_NEAR(factor_of("volta_sgemm_128x64_nn", kUpgrade), 15.7 / 19.5, 0.01);
  EXPECT_NEAR(factor_of("volta_fp16_s884gemm_fp16_128x64_nn", kUpgrade), 125.0 / 312, 0.01);
  EXPECT_NEAR(factor_of("vectorized_elementwise_kernel", kUpgrade), 900.0 / 1555, 0.01);
  EXPECT_NEAR(factor_of("x:copy_on_device", kUpgrade), 900.0 / 1555, 0.01);
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
  EXPECT_NEAR(factor_of(kConvolution, kUpgrade), 15.7 / 78, 0.01);
  EXPECT_NEAR(factor_of(kConvolution,
                        "faster_device:from=v100-sxm2-32gb,to=a100-sxm4-40gb,"
                        "tf32_convolutions=false"),
              15.7 / 19.5, 0.01);
  EXPECT_NEAR(factor_of("ampere_scudnn_128x64_relu_interior_nn_v1",
                        "faster_device:from=a100-sxm4-40gb,to=h100-sxm5-80gb"),
              19.5 / 66.9, 0.01);
}

TEST(FasterDevice, TheSameDeviceChangesNothing) {
  EXPECT_EQ(
      factor_of("volta_sgemm_128x64_nn", "faster_device:from=v100-sxm2-32gb,to=v100-sxm2-32gb"), 1);
}

TEST(FasterDevice, ShortKernelsHostAndCollectivesStay) {
  EXPECT_EQ(simulated("cpu: h:host 4\nstream: k 3, c:collective 4",
                      R"({"use": "faster_device", "from": "v100-sxm2-32gb",
                      "to": "a100-sxm4-40gb"})"),
            R"(
cpu    |hhhh...|
stream |kkkcccc|
)");
}

// A kernel that mostly consists of its startup takes no longer on a slower device either.
TEST(FasterDevice, ShortKernelsStayOnASlowerDevice) {
  EXPECT_EQ(simulated("stream: k 3, vectorized_elementwise_kernel 9",
                      R"({"use": "faster_device", "from": "a100-sxm4-40gb",
                      "to": "v100-sxm2-32gb"})"),
            R"(
stream |kkkvvvvvvvvvvvvvvvv|
)");
}

TEST(FasterDevice, TakesTheRecordedDeviceAsFrom) {
  Graph graph = parse_graph("stream: vectorized_elementwise_kernel 1000");
  graph.device_names() = {"Tesla V100-SXM2-32GB"};
  read_transform_text("faster_device:to=a100-sxm4-40gb")->apply(graph, {});
  EXPECT_NEAR(static_cast<double>(graph.task(TaskId{0}).duration.count()), 1e6 * 900.0 / 1555, 1e4);
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

}  // namespace
}  // namespace foretrace
