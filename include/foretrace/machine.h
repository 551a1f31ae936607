#pragma once

// The hardware that a run uses, and the cost of work there.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/units.h"

namespace foretrace {

/// One accelerator, as settings: a machine file is read and printed by the same list. Peaks are
/// those of the data sheet, without sparsity.
class DeviceModel final : public Described {
 public:
  void describe(Fields& fields) override;

  std::string name;                               ///< "H100-SXM5-80GB"
  Throughput fp64, fp32, tf32, fp16, bf16, int8;  ///< 0 if the device has no such arithmetic.
  Bandwidth memory_bandwidth{};
  Bytes memory{};
  Bandwidth host_link{};  ///< Each way, pinned memory.
  /// From the end of a launch call to the start of the kernel on an idle stream.
  Nanoseconds launch_latency{0};
  std::string source;  ///< Where the figures are from, or that they are recalled.

  /// The usual type for training in mixed precision: bf16, or fp16 where the device has no bf16.
  const char* usual_precision() const { return bf16.flops_per_second > 0 ? "bf16" : "fp16"; }
};

/// Names of built-in devices, sorted.
std::vector<std::string_view> device_names();

/// A built-in name ("a100-sxm4-40gb"; case and punctuation do not matter), or the path of a JSON
/// file with the settings above. Throws Error with the nearest names.
DeviceModel find_device(std::string_view name_or_path);

/// The built-in device that a trace's device name ("NVIDIA A100-SXM4-40GB", "Tesla
/// V100-SXM2-32GB") means; nullptr if none.
const DeviceModel* device_recorded_as(std::string_view recorded_name);

/// The largest block that can leave the device at `out` and return at `in` between two accesses
/// that are `interval` apart: interval / (1 / out + 1 / in), rounded down; 0 if a rate or the
/// interval is 0. (J. Li et al., Pinpointing the Memory Behaviors of DNN Training, ISPASS 2021.) It
/// assumes that both copies start at once: the caller accounts for other copies on the link.
Bytes swappable(Nanoseconds interval, Bandwidth out, Bandwidth in);

/// The kind of work of a kernel, from its name alone; used for roofline and AMP. `latency` is work
/// that neither a faster device nor faster memory speeds up: messages between devices, tiny
/// bookkeeping.
enum class Boundness : std::uint8_t { compute, memory, latency };
/// How the output of a memory-bound kernel depends on its input, which decides what a compiler can
/// fuse it with. pointwise: each element on those at the same place. reduction: an element on many.
/// normalization: a reduction that is applied to all its inputs, such as softmax.
enum class Pattern : std::uint8_t { other, pointwise, reduction, normalization };
/// Who wrote a kernel, as far as its name says. compiler: generated for one program, by
/// TorchInductor or another user of Triton's conventions. framework: part of a deep learning
/// framework or of a library that frameworks call. unknown: somebody else, as a rule.
enum class Origin : std::uint8_t { unknown, framework, compiler };
struct KernelClass {
  Boundness bound = Boundness::memory;
  Pattern pattern = Pattern::other;
  bool tensor_cores = false;    ///< Already runs on them (its name says so).
  bool half_precision = false;  ///< Already computes in fp16, bf16 or narrower types.
  bool narrow = false;          ///< Computes or stores in eight bits or fewer.
  bool double_precision = false;
  /// Autocast leaves it in FP32, or narrower values gain nothing: norms, softmax, losses and
  /// conversions of layout.
  bool keeps_precision = false;
  int tensors = 0;  ///< Tensors that it reads and writes, each counted once; 0 if not known.
  Origin origin = Origin::unknown;
};
KernelClass classify_kernel(std::string_view name);

/// The part of a kernel's name that decides its class: fragments such as "gemm" and "bf16", joined
/// by dashes. They are classified like the name, even with a dash and any of the letters d, g, h,
/// j, k, v and z behind them.
std::string class_words(std::string_view name);

}  // namespace foretrace
