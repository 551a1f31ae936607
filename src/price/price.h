#pragma once

// The cost of a training step of a model on a machine, without a trace: times from a roofline with
// a few named constants, memory from what each device keeps.
//
//     workload --slice--> layers --constants--> stage costs --pipeline--> step
//                                               + gradients, optimizer
//
// The constants are fitted to measured steps (src/price/calibration.h). A Gaussian process over the
// shapes of those steps extends the error that the constants leave to similar shapes.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/cluster.h"
#include "foretrace/fields.h"
#include "foretrace/machine.h"
#include "foretrace/units.h"
#include "workload/workload.h"

namespace foretrace {

/// How a job is laid out over devices.
struct Layout final : Described {
  void describe(Fields& fields) override;
  void check() const override;

  std::int64_t tensor = 1, pipeline = 1, data = 1, context = 1, expert = 1;
  /// Ranks that share each expert; 0: those that share other layers if ep is 1, and else one.
  std::int64_t expert_tensor = 0;
  std::int64_t replicas = 1;  ///< Groups of data parallel ranks that each have all shards (HSDP).
  std::int64_t virtual_stages = 1;
  std::int64_t flushes = 1;                        ///< How often the pipeline drains in a step.
  std::int64_t micro_batch = 1, global_batch = 1;  ///< Samples.
  std::string schedule = "1f1b";
  std::string recompute = "none";
  double recompute_share = 1;  ///< Share of the layers that are recomputed, if `recompute` is full.
  std::string framework = "megatron";
  std::string precision = "bf16";  ///< The type of matrix products.
  std::int64_t zero = 0;  ///< 1: optimizer state is sharded, 2: gradients too, 3: weights too.
  bool sequence_parallel = false;
  bool fused_loss = false;  ///< Logits exist in pieces, as many as the vocabulary is model widths.
  /// Weights are frozen; adapters cost what their operators move, if those are not fused.
  bool lora = false;
  /// Whether the host's memory holds the inputs from which whole layers are recomputed, and the
  /// optimizer state.
  bool host_checkpoints = false, host_optimizer = false;
  bool fused_attention = true;
  std::string attention_kernel = "usual";  ///< Of fused attention.
  std::string pointwise = "usual";  ///< Whether norms and activation functions are one kernel each.
  /// How tokens reach experts: a copy for each, or, as DeepEP has it, one for each rank and node.
  std::string dispatcher = "alltoall";
  bool overlaps_dispatch = false;   ///< Tokens travel beside the passes of another micro-batch.
  bool overlaps_exchanges = false;  ///< Tensor parallel exchanges run beside products.
  bool overlaps_gradients = true;   ///< Gradients are summed beside the backward pass.
  /// Batches after which a pipeline without a flush drains all the same, as a short run does; 0:
  /// never.
  std::int64_t drain_after = 0;
  bool blocking_launches = false;   ///< The host waits for each kernel (CUDA_LAUNCH_BLOCKING=1).
  bool graphs = false;              ///< CUDA graphs: the host launches no kernel by itself.
  bool embedding_is_layer = false;  ///< Stages count embedding and head as one block each.

  std::int64_t devices() const { return tensor * pipeline * data * context; }
  std::int64_t micro_batches() const { return global_batch / (data * micro_batch); }
  /// The part of a step between two times that the pipeline drains.
  Layout between_flushes() const {
    Layout part = *this;
    part.global_batch /= flushes, part.flushes = 1;
    return part;
  }
  /// Ranks that share an expert.
  std::int64_t of_expert() const {
    return expert_tensor > 0 ? expert_tensor : (expert == 1 ? tensor : 1);
  }
  /// Ranks among which sharded weights, gradients and states are divided.
  std::int64_t shards() const { return data * context / replicas; }
};

/// Names for Layout::framework.
std::vector<std::string_view> framework_names();

/// The settings of a layout that differ from their defaults: "tp=8,pp=12".
std::string layout_text(Layout layout);

/// The devices and links that a step uses.
struct Platform {
  std::string name;
  DeviceModel device;
  double multiprocessors = 108;
  /// Shares of the device's peak that large kernels sustain, relative to an A100.
  double product_share = 1, attention_share = 1;
  double flash2_share = 1;  ///< FlashAttention 2.
  double engine_share = 1;  ///< Attention in Transformer Engine (cuDNN), and FlashAttention 3.
  bool writes_beside_products = false;  ///< Products are written while others are computed.
  std::int64_t per_node = 8;            ///< Devices that reach each other without a NIC.
  Bandwidth within{}, across{};  ///< For one device, one way; `across` is its share of the NICs.
  std::int64_t per_host = 8;
  std::vector<FabricTier> tiers{};  ///< Hosts beyond which less than `across` is left.
  double extra_latency_us = 0;      ///< Of a hop between hosts, beyond InfiniBand.
};

/// The device and links of a machine that find_cluster() knows. Throws Error if it does not.
Platform find_platform(const std::string& machine);
/// One device in a host of its own.
Platform lone_platform(const DeviceModel& device);

/// FLOP/s of the data sheet for Layout::precision; 0 if the device has no such arithmetic.
double sheet_peak(const DeviceModel& device, const std::string& precision);

/// The time that the products of weights take at sheet_peak(), in microseconds: no step is shorter.
double least_us(const Workload& workload, const Layout& layout, const Platform& platform);

/// Factors and terms of the roofline. Defaults are fitted; constants.def has the source of each.
struct Constants {
  double gemm = .82;           ///< A large matrix product; of peak.
  double inner_half = 200;     ///< Inner size that a matrix product's start and end cost; elements.
  double moved = .65;          ///< Kernels that memory limits; of bandwidth.
  double attention = .45;      ///< Fused attention; of peak.
  double forward_launch = 40;  ///< Host time of a kernel, forward; us.
  double backward_launch = 14;  ///< Host time of a kernel, backward; us.
  double gap = 8;               ///< From the end of a kernel to full speed of the next; us.
  double exchange = 20;         ///< Start of a sum over tensor parallel ranks; us.
  double exchange_across = 60;  ///< Added to `exchange` if ranks are on several nodes; us.
  double within = .9;           ///< Collectives within a node; of bandwidth.
  double across = .8;           ///< Collectives and sends across nodes; of bandwidth.
  double late = .012;           ///< Deviation between hosts; of the time of passes.
  double fixed = 5000;          ///< Time of a step, whatever it computes; us.
  double send = 50;             ///< Start of a send between stages; us.
  double optimizer = 30;        ///< Moved for each parameter that a device updates; bytes.
  /// Moved for each parameter and micro-batch to add its gradient to a sum in 4 bytes; bytes.
  /// Without a fused kernel it is 12.
  double accumulate = 8;
  /// How many times as long a matrix product with a size that is no multiple of 8 takes: from
  /// BLOOM's search, 128 heads of 108.
  double misaligned = 8;
  /// The same for a size that is no multiple of 64: from BLOOM's search, 14400 over 8 ranks.
  double ragged = 1.25;
};

struct ConstantEntry {
  std::string_view name, unit, help;
  double start, spread;  ///< `spread`: expected deviation of the logarithm between machines.
  double Constants::*value;
};
const std::vector<ConstantEntry>& constants();

/// Times of one stage for one micro-batch, in microseconds.
struct StagePrice {
  double forward = 0, backward = 0, recompute = 0;
  double tensor_part = 0;  ///< Tensor parallel exchanges in forward, backward and recompute.
  double sharding = 0;     ///< Gathers and scatters of shards that forward and backward wait for.
  double host = 0;         ///< The part of these whose length is that of the host's launches.
  double attention = 0;    ///< Fused attention in forward, backward and recompute.
  double experts = 0;      ///< The rest of layers with experts.
  double send = 0;         ///< To the next stage, and back.
};

/// Memory on the device that needs most: its parts by name, and their sum.
struct StepMemory {
  std::vector<std::pair<std::string, Bytes>> parts;  ///< Largest first.
  Bytes allocated{};
  Bytes reserved{};  ///< With fragmentation, the context and communication buffers.
};

/// How probable it is that a step needs more memory than a device has: predicted sizes are off by a
/// few percent.
double out_of_memory(const StepMemory& memory, const Platform& platform);
/// Whether that is more probable than not.
bool runs_out(const StepMemory& memory, const Platform& platform);

/// The time of a step and its parts, in microseconds.
struct StepPrice {
  double step = 0;
  double compute = 0, tensor = 0, bubble = 0, sends = 0, gradients = 0, optimizer = 0, other = 0;
  double late = 0;                    ///< Waiting for the slowest host.
  double host = 0;                    ///< As long as launches take; part of `compute` and `tensor`.
  double attention = 0, experts = 0;  ///< Fused attention, and the rest of layers with experts.
  double operations = 0;  ///< Model on all samples, forward and backward, without recomputation.
};

/// How the time of a pipeline is found: by replay, or as a lower bound without one.
enum class PipelineTime : std::uint8_t { replayed, at_least };

/// Prices steps. It keeps the pipelines that it compiled, so each thread needs its own.
class StepPricer {
 public:
  StepPricer();
  StepPricer(StepPricer&&) noexcept;
  StepPricer& operator=(StepPricer&&) noexcept;
  ~StepPricer();

  /// Throws Error if the layout does not fit the model or the platform. The step takes no longer
  /// with `at_least` than with `replayed`, and only its bubble differs.
  StepPrice price(const Workload& workload, const Layout& layout, const Platform& platform,
                  const Constants& constants, PipelineTime time = PipelineTime::replayed);
  /// The memory on the device that needs most. Throws Error if the layout does not fit the model.
  StepMemory memory(const Workload& workload, const Layout& layout);
  /// The layout with the least recomputation with which it fits, or with the least memory if none
  /// does. Throws Error if the layout does not fit the model.
  Layout fitting(const Workload& workload, Layout layout, const Platform& platform);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
