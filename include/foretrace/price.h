#pragma once

// The cost of a training step of a model on a machine, without a trace: times from a roofline with
// a few named constants, memory from what each device keeps.
//
//     workload --slice--> layers --constants--> stage costs --pipeline--> step
//                                               + gradients, optimizer
//
// The constants are fitted to measured steps (calibration.h below); a Gaussian process over the
// shapes of those steps carries what the constants leave over to shapes near them.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/machine.h"
#include "foretrace/units.h"
#include "foretrace/workload.h"

namespace foretrace {

/// How a job is laid out over devices.
struct Layout final : Described {
  void describe(Fields& fields) override;
  void check() const override;

  std::int64_t tensor = 1, pipeline = 1, data = 1, context = 1, expert = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batch = 1, global_batch = 1;  ///< Samples.
  std::string schedule = "1f1b";
  std::string recompute = "none";
  std::string precision = "bf16";  ///< The type of matrix products.
  std::int64_t zero = 0;  ///< 1: optimizer state is sharded, 2: gradients too, 3: weights too.
  bool sequence_parallel = false;
  bool lora = false;  ///< Weights are frozen; what adapters cost is left out.
  /// In the host's memory: the inputs that whole recomputed layers start from; optimizer state.
  bool host_checkpoints = false, host_optimizer = false;
  bool fused_attention = true;
  bool overlaps_gradients = true;   ///< Their sums run beside the backward pass.
  bool blocking_launches = false;   ///< The host waits for each kernel (CUDA_LAUNCH_BLOCKING=1).
  bool embedding_is_layer = false;  ///< Stages count embedding and head as a block each.

  std::int64_t devices() const { return tensor * pipeline * data * context; }
  std::int64_t micro_batches() const { return global_batch / (data * micro_batch); }
};

/// The settings that differ from their defaults: "tp=8,pp=12".
std::string layout_text(Layout layout);

/// The machine as a step sees it.
struct Platform {
  std::string name;
  DeviceModel device;
  double multiprocessors = 108;
  /// The shares that large kernels sustain of the device's peak, relative to an A100.
  double product_share = 1, attention_share = 1;
  std::int64_t per_node = 8;     ///< Devices that reach each other without a NIC.
  Bandwidth within{}, across{};  ///< For one device, one way; `across` is its share of the NICs.
};

/// The device and links of a machine for find_cluster(). Throws Error.
Platform find_platform(const std::string& machine);

/// Factors and terms of the roofline. Defaults are fitted: constants.def
/// says where each is from.
struct Constants {
  double gemm = .82;           ///< A large matrix product; of peak.
  double inner_half = 200;     ///< Inner size that a matrix product's start and end cost; elements.
  double moved = .65;          ///< Kernels that memory limits; of bandwidth.
  double attention = .45;      ///< Fused attention; of peak.
  double forward_launch = 40;  ///< Host time of a kernel, forward; us.
  double backward_launch = 14;  ///< Host time of a kernel, backward; us.
  double gap = 8;               ///< From the end of a kernel to full speed of the next; us.
  double exchange = 20;         ///< Start of a sum over tensor parallel ranks; us.
  double exchange_across = 60;  ///< The same, more where ranks are on several nodes; us.
  double within = .9;           ///< Collectives within a node; of bandwidth.
  double across = .8;           ///< Collectives and sends across nodes; of bandwidth.
  double fixed = 5000;          ///< The cost of a step whatever it computes; us.
  double send = 50;             ///< Start of a send between stages; us.
  double optimizer = 30;        ///< Moved for each parameter that a device updates; bytes.
  double accumulate = 8;  ///< Moved for each parameter and micro-batch, to add its gradient to a
                          ///< sum in 4 bytes; bytes. Without a fused kernel it is 12.
  double misaligned = 8;  ///< A matrix product with a size that is no multiple of 8: from BLOOM's
                          ///< search, 128 heads of 108; times.
  double ragged = 1.25;   ///< The same, of 64: from BLOOM's search, 14400 over 8 ranks; times.
};

struct ConstantEntry {
  std::string_view name, unit, help;
  double start, spread;  ///< `spread`: how far, as a logarithm, machines are expected to differ.
  double Constants::*value;
};
const std::vector<ConstantEntry>& constants();

/// Microseconds of one device and micro-batch.
struct StagePrice {
  double forward = 0, backward = 0, recompute = 0;
  double tensor_part = 0;  ///< Exchanges of tensors, in forward, backward and recompute together.
  double send = 0;         ///< To the next stage, and back.
};

/// Parts of the memory of the device that needs most, by name, and their sum.
struct StepMemory {
  std::vector<std::pair<std::string, Bytes>> parts;  ///< Largest first.
  Bytes allocated{};
  Bytes reserved{};  ///< With what the allocator loses, the context and communication buffers.
};

/// Whether it is more than a device has.
bool runs_out(const StepMemory& memory, const Platform& platform);

/// Microseconds.
struct StepPrice {
  double step = 0;
  double compute = 0, tensor = 0, bubble = 0, sends = 0, gradients = 0, optimizer = 0, other = 0;
  double operations = 0;  ///< The model on all samples, forward and backward, nothing twice.
};

/// The time of a pipeline: by replay, or a bound that needs none.
enum class PipelineTime : std::uint8_t { replayed, at_least };

/// Prices steps. Keeps the pipelines that it compiled: one object is for one thread.
class StepPricer {
 public:
  StepPricer();
  StepPricer(StepPricer&&) noexcept;
  StepPricer& operator=(StepPricer&&) noexcept;
  ~StepPricer();

  /// Throws Error where the layout does not fit the model or the platform. With `at_least` the step
  /// takes no longer than with `replayed`, and only its bubble differs.
  StepPrice price(const Workload& workload, const Layout& layout, const Platform& platform,
                  const Constants& constants, PipelineTime time = PipelineTime::replayed);
  /// The device that needs most.
  StepMemory memory(const Workload& workload, const Layout& layout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
