#include "machine/operation_rates.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "base/numbers/scaling.h"

namespace foretrace {
namespace {

enum class Family : std::uint8_t {
  any,
#define FAMILY(name, fp8, fp4, ...) name,
#define RATE(...)
#include "machine/operation_rates.def"
#undef FAMILY
#undef RATE
};

struct FamilyRow {
  Family family;
  int fp8, fp4;
  std::vector<std::string_view> prefixes;
};

struct RateRow {
  OperationKind operation;
  Arithmetic arithmetic;
  Family family;
  double share, moved, start_us, inner_ns, error;
};

const std::vector<FamilyRow>& families() {
  static const std::vector<FamilyRow> rows = {
#define FAMILY(name, fp8, fp4, ...) {Family::name, fp8, fp4, __VA_ARGS__},
#define RATE(...)
#include "machine/operation_rates.def"
#undef FAMILY
#undef RATE
  };
  return rows;
}

constexpr RateRow kRates[] = {
#define FAMILY(...)
#define RATE(operation, arithmetic, family, share, moved, start, inner, error) \
  {OperationKind::operation,                                                   \
   Arithmetic::arithmetic,                                                     \
   Family::family,                                                             \
   share,                                                                      \
   moved,                                                                      \
   start,                                                                      \
   inner,                                                                      \
   error},
#include "machine/operation_rates.def"
#undef FAMILY
#undef RATE
};

/// Rates of rows that were fitted to one device, and reach a smaller share of its bandwidth than
/// half precision does in the family: something else limits them there.
struct LoneRow {
  OperationKind operation;
  Arithmetic arithmetic;
  Family family;
  double bandwidth;  ///< Of the device, in bytes a second.
};
constexpr double kH200 = 4.8e12, kA100 = 2.039e12;
constexpr LoneRow kLone[] = {
    {OperationKind::product, Arithmetic::int4_weights, Family::hopper, kH200},
    {OperationKind::product, Arithmetic::int8_weights, Family::hopper, kH200},
    {OperationKind::experts, Arithmetic::int4_weights, Family::ampere, kA100}};

/// nullptr if no beginning fits.
const FamilyRow* family_of(std::string device) {
  for (char& c : device) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found = std::find_if(families().begin(), families().end(), [&](const FamilyRow& row) {
    return std::any_of(row.prefixes.begin(), row.prefixes.end(),
                       [&](std::string_view prefix) { return device.starts_with(prefix); });
  });
  return found == families().end() ? nullptr : &*found;
}

const RateRow* row_of(OperationKind operation, Arithmetic arithmetic, Family family) {
  const auto* const found =
      std::find_if(std::begin(kRates), std::end(kRates), [&](const auto& row) {
        return row.operation == operation && row.arithmetic == arithmetic && row.family == family;
      });
  return found == std::end(kRates) ? nullptr : found;
}

/// A rate that bandwidth does not limit stays with less of it, until that limits it as it limits
/// half precision.
double moved_by(const RateRow& row, double bandwidth) {
  const double share = row.moved * bandwidth;
  const auto* const lone = std::ranges::find_if(kLone, [&](const LoneRow& one) {
    return one.operation == row.operation && one.arithmetic == row.arithmetic &&
           one.family == row.family;
  });
  if (lone == std::end(kLone)) return share;
  const double most = row_of(row.operation, Arithmetic::half, row.family)->moved * bandwidth;
  return std::max(share, std::min(row.moved * lone->bandwidth, most));
}

}  // namespace

std::string_view to_text(Arithmetic arithmetic) {
  constexpr std::string_view kNames[] = {"FP64",         "FP32",        "TF32",  "half precision",
                                         "FP8",          "FP8 blocks",  "NVFP4", "INT8",
                                         "INT8 weights", "INT4 weights"};
  return kNames[static_cast<std::size_t>(arithmetic)];
}

Throughput peak_of(const DeviceModel& device, Arithmetic arithmetic) {
  const FamilyRow* const family = family_of(device.name);
  const Throughput half = std::max(device.bf16, device.fp16);
  const auto times = [&](int factor) { return Throughput{half.flops_per_second * factor}; };
  switch (arithmetic) {
    case Arithmetic::fp64:
      return device.fp64;
    case Arithmetic::fp32:
      return device.fp32;
    case Arithmetic::tf32:
      return device.tf32;
    case Arithmetic::int8:
      return device.int8;
    case Arithmetic::fp8:
    case Arithmetic::fp8_blocks:
      return times(family == nullptr ? 0 : family->fp8);
    case Arithmetic::nvfp4:
      return times(family == nullptr ? 0 : family->fp4);
    case Arithmetic::half:
    case Arithmetic::int8_weights:
    case Arithmetic::int4_weights:
      return half;
  }
  return {};
}

OperationRate rate_of(const DeviceModel& device, OperationKind operation, Arithmetic arithmetic) {
  const FamilyRow* const family = family_of(device.name);
  OperationRate rate;
  const RateRow* row = nullptr;
  for (const Arithmetic type : {arithmetic, Arithmetic::half}) {
    if (row == nullptr && family != nullptr) {
      row = row_of(operation, type, family->family);
      rate.of_family = row != nullptr && type == arithmetic;
    }
    if (row == nullptr) row = row_of(operation, type, Family::any);
  }
  if (row == nullptr) return rate;
  rate.flops_per_second = peak_of(device, arithmetic).flops_per_second * row->share;
  rate.bytes_per_second = moved_by(*row, device.memory_bandwidth.bytes_per_second);
  rate.start = Nanoseconds(std::llround(row->start_us * 1000));
  rate.inner_ns = row->inner_ns;
  rate.error = row->error;
  return rate;
}

Nanoseconds time_at(Nanoseconds recorded, const OperationRate& from, const OperationRate& to,
                    bool by_arithmetic, double bytes, double inner) {
  const auto walk = [&](const OperationRate& rate) {
    return rate.start + Nanoseconds(std::llround(rate.inner_ns * inner));
  };
  const Nanoseconds least =
      inner > 0 ? scaled(recorded, ratio(walk(to), std::max(walk(from), recorded))) : 0ns;
  if (recorded <= from.start) return std::max(least, scaled(recorded, ratio(to.start, from.start)));
  const double factor = by_arithmetic ? from.flops_per_second / to.flops_per_second
                                      : from.bytes_per_second / to.bytes_per_second * bytes;
  return std::max(least, to.start + scaled(recorded - from.start, factor));
}

}  // namespace foretrace
