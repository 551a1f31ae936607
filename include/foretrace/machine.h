#pragma once

// The hardware that a run uses, and the cost of work there.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/units.h"

namespace foretrace {

/// One accelerator, as settings: the same list reads a machine file and prints one. Peaks are those
/// of the data sheet, dense.
class DeviceModel final : public Described {
 public:
  void describe(Fields& fields) override;

  std::string name;                               ///< "H100-SXM5-80GB"
  Throughput fp64, fp32, tf32, fp16, bf16, int8;  ///< 0 where the device cannot.
  Bandwidth memory_bandwidth{};
  Bytes memory{};
  Bandwidth host_link{};  ///< Each way, pinned memory.
  Nanoseconds launch_latency{
      0};  ///< From the end of a launch call to the start of the kernel on an idle stream.
  std::string source;  ///< Where the figures are from, or that they are recalled.

  /// The usual type for training in mixed precision: bf16, or fp16 where the device has no bf16.
  const char* usual_precision() const { return bf16.flops_per_second > 0 ? "bf16" : "fp16"; }
};

/// Names of built-in devices, sorted.
std::vector<std::string_view> device_names();

/// A built-in name ("a100-sxm4-40gb"; case and punctuation do not matter), or the path of a JSON
/// file with the settings above. Throws Error with the nearest names.
DeviceModel find_device(std::string_view name_or_path);

/// The built-in that a trace's device name ("NVIDIA A100-SXM4-40GB", "Tesla V100-SXM2-32GB") means;
/// nullptr if none.
const DeviceModel* device_recorded_as(std::string_view recorded_name);

/// The largest block that leaves the device at `out` and is back at `in` within `interval`, so that
/// two accesses that far apart never notice: interval / (1 / out + 1 / in), rounded down. Nothing
/// where a rate or the interval is 0. (J. Li et al., Pinpointing the Memory Behaviors of DNN
/// Training, ISPASS 2021.) It takes both copies to start at once: other copies on the link are the
/// caller's to count.
Bytes swappable(Nanoseconds interval, Bandwidth out, Bandwidth in);

/// The kind of work of a kernel, from its name alone; used for roofline and AMP. `latency` is work
/// that neither a faster device nor faster memory speeds up: messages between devices, tiny
/// bookkeeping.
enum class Boundness : std::uint8_t { compute, memory, latency };
/// How the output of a memory-bound kernel depends on its input, which decides what a compiler can
/// join it with. pointwise: each element on those at the same place. reduction: many elements on
/// one. normalization: a reduction that is applied to all its inputs, such as softmax.
enum class Pattern : std::uint8_t { other, pointwise, reduction, normalization };
struct KernelClass {
  Boundness bound = Boundness::memory;
  Pattern pattern = Pattern::other;
  bool tensor_cores = false;    ///< Already runs on them (its name says so).
  bool half_precision = false;  ///< Already computes in fp16, bf16 or narrower types.
};
KernelClass classify_kernel(std::string_view name);

/// The part of a kernel's name that decides its class: fragments such as "gemm" and "bf16", joined
/// by dashes. They classify as the name does, also when followed by a dash and letters none of a-c,
/// e, f, i, l-u, w-y.
std::string class_words(std::string_view name);

}  // namespace foretrace
