#include "machine/operation_rates.h"

#include <gtest/gtest.h>

#include "foretrace/machine.h"

namespace foretrace {
namespace {

OperationRate product_on(const char* device, Arithmetic arithmetic) {
  return rate_of(find_device(device), OperationKind::product, arithmetic);
}

/// Microseconds of a product of m x k by k x n, with `bytes` for each element.
double product_us(const OperationRate& rate, double m, double n, double k, double bytes) {
  const double moved = bytes * (m * k + n * k) + 2 * m * n;
  return static_cast<double>(rate.start.count()) / 1e3 +
         std::max({1e6 * 2 * m * n * k / rate.flops_per_second, 1e6 * moved / rate.bytes_per_second,
                   1e-3 * rate.inner_ns * k});
}

// Only an H200 was measured, whose memory does not limit products with INT4 weights.
TEST(OperationRates, WhatMemoryDoesNotLimitIsAsFastWithLessOfIt) {
  const auto bytes = [](const char* device, Arithmetic arithmetic) {
    return product_on(device, arithmetic).bytes_per_second;
  };
  constexpr Arithmetic kInt4 = Arithmetic::int4_weights;
  EXPECT_DOUBLE_EQ(bytes("h100-sxm5-80gb", kInt4), bytes("h200-sxm5-141gb", kInt4));
  EXPECT_DOUBLE_EQ(bytes("h100-pcie-80gb", kInt4), bytes("h100-pcie-80gb", Arithmetic::half));
  EXPECT_LT(bytes("h100-pcie-80gb", kInt4), bytes("h100-sxm5-80gb", kInt4));
  EXPECT_DOUBLE_EQ(bytes("a100-sxm4-40gb", kInt4) / bytes("a100-sxm4-80gb", kInt4), 1555. / 2039);
}

TEST(OperationRates, EveryDeviceHasThemForEveryOperation) {
  for (const std::string_view name : device_names()) {
    SCOPED_TRACE(name);
    const DeviceModel device = find_device(name);
    for (const OperationKind operation :
         {OperationKind::product, OperationKind::attention, OperationKind::decode,
          OperationKind::experts, OperationKind::stream}) {
      const OperationRate rate = rate_of(device, operation, Arithmetic::half);
      EXPECT_GT(rate.flops_per_second, 0);
      EXPECT_GT(rate.bytes_per_second, device.memory_bandwidth.bytes_per_second / 10);
      EXPECT_LE(rate.bytes_per_second, device.memory_bandwidth.bytes_per_second * 1.3);
      EXPECT_GT(rate.start, 0ns);
    }
  }
}

TEST(OperationRates, TypesThatADeviceLacksHaveNone) {
  EXPECT_EQ(product_on("v100-sxm2-32gb", Arithmetic::fp8).flops_per_second, 0);
  EXPECT_EQ(product_on("h100-sxm5-80gb", Arithmetic::nvfp4).flops_per_second, 0);
  EXPECT_EQ(product_on("v100-sxm2-32gb", Arithmetic::tf32).flops_per_second, 0);
  EXPECT_GT(product_on("b200", Arithmetic::nvfp4).flops_per_second, 0);
}

// Public times of large products: FP8 1.4 to 1.6 times as fast as BF16; NVFP4 2.0 to 2.2 for this
// size on a B200.
TEST(OperationRates, NarrowTypesGainInLargeProductsAndLoseInSmallOnes) {
  const auto gain = [](const char* device, Arithmetic type, double size, double bytes) {
    return product_us(product_on(device, Arithmetic::half), size, size, size, 2) /
           product_us(product_on(device, type), size, size, size, bytes);
  };
  EXPECT_NEAR(gain("h100-sxm5-80gb", Arithmetic::fp8, 16384, 1), 1.5, 0.15);
  EXPECT_NEAR(gain("b200", Arithmetic::fp8, 16384, 1), 1.5, 0.15);
  EXPECT_NEAR(gain("b200", Arithmetic::nvfp4, 16384, 0.5625), 2.1, 0.2);
  EXPECT_LT(gain("h100-sxm5-80gb", Arithmetic::fp8, 512, 1), 0.5);
  EXPECT_LT(gain("b200", Arithmetic::nvfp4, 512, 0.5625), 0.5);
}

// Public times on a B200: 9.2 us in BF16 and 19.4 us in NVFP4 for 1 x 7168 by 7168 x 2048.
TEST(OperationRates, AProductWithFewTilesTakesAsLongAsItsInnerSizeIsLong) {
  const OperationRate half = product_on("b200", Arithmetic::half);
  const OperationRate nvfp4 = product_on("b200", Arithmetic::nvfp4);
  EXPECT_NEAR(product_us(half, 1, 2048, 7168, 2), 9.2, 1);
  EXPECT_NEAR(product_us(nvfp4, 1, 2048, 7168, 0.5625), 19.4, 2);
  EXPECT_NEAR(product_us(nvfp4, 1, 4096, 7168, 0.5625), 19.4, 2);
}

TEST(OperationRates, AFamilyThatWasNotMeasuredHasThoseOfAll) {
  EXPECT_TRUE(product_on("h200-sxm5-141gb", Arithmetic::half).of_family);
  EXPECT_FALSE(product_on("v100-sxm2-32gb", Arithmetic::half).of_family);
  EXPECT_FALSE(product_on("mi300x", Arithmetic::fp8).of_family);
  DeviceModel mine = find_device("h100-sxm5-80gb");
  mine.name = "H100 of mine";
  EXPECT_EQ(rate_of(mine, OperationKind::product, Arithmetic::half).flops_per_second,
            product_on("h100-sxm5-80gb", Arithmetic::half).flops_per_second);
  mine.name = "mine";
  EXPECT_FALSE(rate_of(mine, OperationKind::product, Arithmetic::half).of_family);
}

TEST(OperationRates, WorkScalesBehindTheStart) {
  const OperationRate slow{.flops_per_second = 1e12, .bytes_per_second = 1e9, .start = 4us};
  const OperationRate fast{.flops_per_second = 4e12, .bytes_per_second = 2e9, .start = 6us};
  EXPECT_EQ(time_at(104us, slow, fast, true), 31us);
  EXPECT_EQ(time_at(104us, slow, fast, false), 56us);
  EXPECT_EQ(time_at(104us, slow, fast, false, 0.5), 31us);
  EXPECT_EQ(time_at(4us, slow, fast, true), 6us);
  EXPECT_EQ(time_at(2us, slow, fast, true), 3us);
  EXPECT_EQ(time_at(31us, fast, slow, true), 104us);
}

TEST(OperationRates, AProductTakesNoLessThanItsWalkThere) {
  const OperationRate from{
      .flops_per_second = 1e12, .bytes_per_second = 1e9, .start = 4us, .inner_ns = 1};
  const OperationRate to{
      .flops_per_second = 4e12, .bytes_per_second = 2e9, .start = 6us, .inner_ns = 3};
  EXPECT_EQ(time_at(24us, from, to, true, 1, 10'000), 36us);   // 6 + 3 x 10, not 6 + 20 / 4.
  EXPECT_EQ(time_at(204us, from, to, true, 1, 10'000), 56us);  // Arithmetic takes longer.
  EXPECT_EQ(time_at(7us, from, to, true, 1, 10'000), 18us);    // Half of what it takes there.
  EXPECT_EQ(time_at(7us, from, from, true, 1, 10'000), 7us);
}

}  // namespace
}  // namespace foretrace
