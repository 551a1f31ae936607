// The price of a step: stages of layers in a pipeline, sums of gradients, the optimizer.
//
//     stage     sum over its layers of max(device, host)     forward, backward, recomputation
//     pipeline  replay of its schedule
//     gradients the part that the backward pass does not hide
//
// Not modelled: stragglers, checkpoints, data loading.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "foretrace/error.h"
#include "price/memory.h"
#include "price/pipeline.h"
#include "price/rates.h"
#include "price/stages.h"

namespace foretrace {
namespace {

/// Kernels of a backward pass per kernel of the forward pass.
constexpr double kBackwardKernels = 1.5;
constexpr double kExchangeKernels = 3;  ///< Launches and bookkeeping of an exchange.
/// Relative to the forward pass: 2.5 times the operations, and slower.
constexpr double kAttentionBackward = 3;
constexpr double kWeightBytes = 2;
/// The last bucket of gradients overlaps nothing.
constexpr double kLastBucket = .05;

class TrainingStep {
 public:
  TrainingStep(const Workload& workload, const Layout& layout, const Platform& platform,
               const Constants& constants, Pipelines& pipelines)
      : workload_(workload),
        layout_(layout),
        constants_(constants),
        pipelines_(pipelines),
        rates_(platform, layout, constants),
        recompute_(recompute_of(layout)),
        table_(workload.layers(slice_of(layout))) {}

  StepPrice price(PipelineTime time) {
    const std::vector<StageRows> stages = split_stages(table_, layout_);
    StepPrice price;
    std::vector<StagePrice> costs;
    for (const StageRows& stage : stages) costs.push_back(cost_of(stage));
    add_pipeline(costs, time, price);
    add_update(stages, costs, price);
    price.other = constants_.fixed;
    price.step += price.other;
    price.operations = 3 * workload_.operations() * static_cast<double>(layout_.global_batch);
    return price;
  }

 private:
  StagePrice layer_cost(const LayerRow& row) const {
    double forward = 0, backward = 0;
    for (const Gemm& gemm : row.gemms) {
      forward += rates_.forward(gemm);
      backward += rates_.backward(gemm);
    }
    const double attention = rates_.attention(row.attention_operations);
    double scores = 0;  // Repeated by selective recomputation.
    for (const Gemm& gemm : row.gemms) scores += gemm.has_weights ? 0 : rates_.forward(gemm);
    forward += attention + rates_.moved(row.moved_bytes);
    backward += kAttentionBackward * attention + rates_.moved(row.moved_back_bytes);
    backward += accumulation(row);
    const double exchange = static_cast<double>(row.exchanges) * exchange_us(row);
    const double route = 2 * rates_.all_to_all(layout_.expert, layout_.tensor,
                                               static_cast<double>(row.routed.count));
    const double ring_attention = ring_attention_us(row);
    const double communication = exchange + route + ring_attention;
    const double kernels =
        static_cast<double>(row.kernels) + kExchangeKernels * static_cast<double>(row.exchanges);
    StagePrice cost;
    const double back_kernels = kernels * kBackwardKernels;
    cost.forward = with_launches(forward + communication + kernels * constants_.gap,
                                 kernels * constants_.forward_launch);
    cost.backward = with_launches(backward + communication + back_kernels * constants_.gap,
                                  back_kernels * constants_.backward_launch);
    const bool is_block = row.name != "embedding" && row.name != "head";
    if (recompute_ == Recompute::full && is_block) cost.recompute = cost.forward;
    if (recompute_ == Recompute::selective && is_block) cost.recompute = scores + attention;
    cost.tensor_part = communication * (2 + (recompute_ == Recompute::full && is_block ? 1 : 0));
    return cost;
  }

  /// The host launches ahead of the device, unless it waits for each kernel.
  double with_launches(double device, double host) const {
    return layout_.blocking_launches ? device + host : std::max(device, host);
  }

  /// Every micro-batch adds its gradients to the sum, whatever its size.
  double accumulation(const LayerRow& row) const {
    if (layout_.lora || layout_.micro_batches() == 1) return 0;
    return rates_.moved(constants_.accumulate * (row.parameters + row.expert_parameters));
  }

  /// A sum over tensor parallel ranks; with sequence parallelism, its two halves run separately.
  double exchange_us(const LayerRow& row) const {
    const auto bytes = static_cast<double>(row.exchanged.count);
    if (!layout_.sequence_parallel) return rates_.all_reduce(layout_.tensor, 1, bytes);
    return 2 * rates_.all_gather(layout_.tensor, 1, bytes);
  }

  /// Ring attention passes keys and values between the context ranks; the attention on those
  /// already present hides the transfer.
  double ring_attention_us(const LayerRow& row) const {
    if (layout_.context <= 1 || row.attention_operations <= 0) return 0;
    const double bytes =
        static_cast<double>(row.output.count) * static_cast<double>(layout_.context);
    const double gather = rates_.all_gather(layout_.context, layout_.tensor, bytes / 4);
    return std::max(0., gather - rates_.attention(row.attention_operations));
  }

  /// Layers of the same row have the same cost, which is computed once.
  const StagePrice& cost_of_row(std::size_t row) {
    if (layer_costs_.empty()) layer_costs_.resize(table_.size());
    if (!layer_costs_[row]) layer_costs_[row] = layer_cost(table_[row]);
    return *layer_costs_[row];
  }

  StagePrice cost_of(const StageRows& stage) {
    StagePrice sum;
    for (const auto& [row, count] : stage) {
      const StagePrice& one = cost_of_row(row);
      sum.forward += count * one.forward, sum.backward += count * one.backward;
      sum.recompute += count * one.recompute, sum.tensor_part += count * one.tensor_part;
    }
    if (layout_.zero == 2 && !layout_.lora) scatter_gradients(stage, sum);
    if (layout_.zero >= 3) gather_weights(stage, sum);
    if (layout_.pipeline > 1) {
      const double bytes =
          static_cast<double>(table_[1].output.count) / static_cast<double>(layout_.tensor);
      sum.send = rates_.send(layout_.tensor * layout_.data * layout_.context, bytes);
    }
    return sum;
  }

  /// Sharded gradients cannot be accumulated whole: each micro-batch scatters its own, overlapping
  /// the backward pass of the layers before.
  void scatter_gradients(const StageRows& stage, StagePrice& cost) const {
    const double bytes = gradient_bytes(layout_) * parameters_of(table_, stage);
    const double scatter = rates_.all_gather(layout_.data * layout_.context, layout_.tensor, bytes);
    const double hides = layout_.overlaps_gradients ? cost.backward + cost.recompute : 0;
    cost.backward += std::max(0., scatter - hides) + scatter / std::max(1., layers_of(stage));
  }

  /// Sharded weights are gathered before each pass, and gradients scattered after it; both overlap
  /// the passes of neighboring layers.
  void gather_weights(const StageRows& stage, StagePrice& cost) const {
    const double bytes = kWeightBytes * parameters_of(table_, stage);
    const double gather = rates_.all_gather(layout_.data * layout_.context, layout_.tensor, bytes);
    const double layers = std::max(1., layers_of(stage));
    cost.forward = std::max(cost.forward, gather) + gather / layers;
    cost.backward =
        std::max(cost.backward + cost.recompute, 2 * gather) - cost.recompute + gather / layers;
  }

  void add_pipeline(const std::vector<StagePrice>& costs, PipelineTime time, StepPrice& price) {
    const auto m = static_cast<double>(layout_.micro_batches());
    const auto stages = static_cast<double>(layout_.pipeline);
    price.step = time == PipelineTime::replayed ? pipelines_.us(costs, layout_)
                                                : pipelines_.at_least(costs, layout_);
    for (const StagePrice& cost : costs) {
      price.compute += m / stages * (cost.forward + cost.backward + cost.recompute);
      price.tensor += m / stages * cost.tensor_part;
      if (layout_.pipeline > 1) price.sends += 2 * m / stages * cost.send;
    }
    price.compute -= price.tensor;
    price.bubble = std::max(0., price.step - price.compute - price.tensor - price.sends);
  }

  /// Adds the sums of gradients and the optimizer of the stage that takes longest.
  void add_update(const std::vector<StageRows>& stages, const std::vector<StagePrice>& costs,
                  StepPrice& price) const {
    if (layout_.lora) return;
    const PipelineShape& shape = pipelines_.shape(layout_);
    for (const RankPlan& rank : shape.ranks) {
      double parameters = 0, experts = 0, backward = 0;
      std::int64_t copies = 1;
      for (const auto& [i, share] : rank.parts) {
        parameters += parameters_of(table_, stages[i]) - experts_of(table_, stages[i]);
        experts += experts_of(table_, stages[i]);
        backward += costs[i].backward + costs[i].recompute;
        copies = shape.copies[i];
      }
      const double shards = layout_.zero >= 1 ? static_cast<double>(layout_.data) : 1;
      double gradients = shape.updates * gradient_us(parameters, experts, copies);
      if (layout_.overlaps_gradients)
        gradients = shape.flushes ? std::max(gradients - backward, kLastBucket * gradients)
                                  : std::max(0., gradients - price.step);
      const double optimizer =
          shape.updates * rates_.moved(constants_.optimizer * (parameters + experts) / shards);
      price.gradients = std::max(price.gradients, gradients);
      price.optimizer = std::max(price.optimizer, optimizer);
    }
    price.step += price.gradients + price.optimizer;
  }

  /// Sharded gradients were summed with each micro-batch, so only the weights remain to be
  /// gathered. `pipelines` is the number of pipelines with a copy of the weights.
  double gradient_us(double parameters, double experts, std::int64_t pipelines) const {
    if (layout_.zero >= 3) return 0;
    const std::int64_t ranks = layout_.data * layout_.context * pipelines;
    const std::int64_t stride = layout_.tensor;
    if (layout_.zero == 2)
      return rates_.all_gather(ranks, stride, (parameters + experts) * kWeightBytes);
    const double bytes = gradient_bytes(layout_);
    double us = rates_.all_reduce(ranks, stride, parameters * bytes);
    const std::int64_t copies = std::max<std::int64_t>(1, ranks / layout_.expert);
    us += rates_.all_reduce(copies, stride * layout_.expert, experts * bytes);
    if (layout_.pipeline > 1) {  // The first and last stage share the embedding.
      us += rates_.all_reduce(2, layout_.devices() / 2, table_.front().parameters * bytes) *
            (table_.back().all_parameters < table_.front().parameters ? 1 : 0);
    }
    return us;
  }

  const Workload& workload_;
  const Layout& layout_;
  const Constants& constants_;
  Pipelines& pipelines_;
  Rates rates_;
  Recompute recompute_;
  LayerTable table_;
  std::vector<std::optional<StagePrice>> layer_costs_;
};

}  // namespace

struct StepPricer::Impl {
  Pipelines pipelines;
};

StepPricer::StepPricer() : impl_(std::make_unique<Impl>()) {}
StepPricer::StepPricer(StepPricer&&) noexcept = default;
StepPricer& StepPricer::operator=(StepPricer&&) noexcept = default;
StepPricer::~StepPricer() = default;

StepPrice StepPricer::price(const Workload& workload, const Layout& layout,
                            const Platform& platform, const Constants& constants,
                            PipelineTime time) {
  layout.check();
  return TrainingStep(workload, layout, platform, constants, impl_->pipelines).price(time);
}

StepMemory StepPricer::memory(const Workload& workload, const Layout& layout) {
  const LayerTable table = workload.layers(slice_of(layout));
  return memory_need(table, split_stages(table, layout), layout, impl_->pipelines.shape(layout));
}

}  // namespace foretrace
