#pragma once

// Operations reach on devices a share of the peak of their arithmetic, a share of the bandwidth of
// memory, and take a start: one place for all that price them. Fitted: see operation_rates.def.

#include <string_view>

#include "foretrace/machine.h"

namespace foretrace {

/// A matrix product; attention over a prompt, and of one token over a cache; the products of
/// experts; work bound by memory, such as sums, activations and norms.
enum class OperationKind : std::uint8_t { product, attention, decode, experts, stream };

/// Types of the arithmetic. fp8_blocks: with scales of blocks. int8_weights, int4_weights: only
/// weights are narrow, and the arithmetic is in half precision.
enum class Arithmetic : std::uint8_t {
  fp64,
  fp32,
  tf32,
  half,
  fp8,
  fp8_blocks,
  nvfp4,
  int8,
  int8_weights,
  int4_weights
};
std::string_view to_text(Arithmetic arithmetic);

struct OperationRate {
  double flops_per_second = 0;  ///< 0: the device has no such arithmetic, or it is not known.
  double bytes_per_second = 0;
  Nanoseconds start{};
  double inner_ns = 0;  ///< For each element of a product's inner size.
  double error = 0;     ///< Typical error of a time by this rate on a device that was not fitted.
  /// Whether devices of this family were measured; else the rate is that of all families.
  bool of_family = false;
};

/// The peak of the data sheet; 0 if the device has no such arithmetic.
Throughput peak_of(const DeviceModel& device, Arithmetic arithmetic);

/// The rate of the device's family, or of all families if none of the family was measured. Types
/// that were not measured for this operation have the shares of half precision.
OperationRate rate_of(const DeviceModel& device, OperationKind operation, Arithmetic arithmetic);

/// The time on a device with rate `to` of work that took `recorded` at rate `from`. `by_arithmetic`
/// says what limits it, else the bandwidth of memory does; `bytes` is how many times the bytes it
/// moves there. Work that is not longer than its start changes as the start does. A product of this
/// `inner` size (0: unknown) takes no less than its tiles take to walk along it, relative to what
/// it took there.
Nanoseconds time_at(Nanoseconds recorded, const OperationRate& from, const OperationRate& to,
                    bool by_arithmetic, double bytes = 1, double inner = 0);

}  // namespace foretrace
