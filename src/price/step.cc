// The price of a step: stages of layers in a pipeline, sums of gradients, the optimizer.
//
//     stage     sum over its layers of max(device, host)     forward, backward, recomputation
//     pipeline  replay of its schedule
//     gradients the part that the passes before and after the update do not hide
//     lateness  waiting for the slowest host
//
// Not modelled: hosts that are always slow, checkpoints, data loading.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/statistics.h"
#include "foretrace/error.h"
#include "price/memory.h"
#include "price/pipeline.h"
#include "price/rates.h"
#include "price/stages.h"

namespace foretrace {
namespace {

/// Kernels of a backward pass per kernel of the forward pass.
constexpr double kBackwardKernels = 1.5;
/// Products of the backward pass for each of the forward pass.
constexpr double kBackProducts = 2;
constexpr double kExchangeKernels = 3;  ///< Launches and bookkeeping of an exchange.
/// Relative to the forward pass: 2.5 times the operations, and slower.
constexpr double kAttentionBackward = 3;
constexpr double kWeightBytes = 2;
/// The last bucket of gradients overlaps nothing.
constexpr double kLastBucket = .05;
/// Share of tensor parallel exchanges that products hide if both are cut into pieces: three pairs
/// of published steps of torchtitan, with and without, hide .33 to .42.
constexpr double kHiddenExchange = .4;

class TrainingStep {
 public:
  TrainingStep(const Workload& workload, const Layout& layout, const Platform& platform,
               const Constants& constants, Pipelines& pipelines)
      : workload_(workload),
        layout_(layout),
        platform_(platform),
        constants_(constants),
        pipelines_(pipelines),
        rates_(platform, layout, constants),
        recompute_(recompute_of(layout)),
        table_(workload.layers(slice_of(layout))),
        framework_(framework_of(layout)) {}

  StepPrice price(PipelineTime time) {
    const std::vector<StageRows> stages = split_stages(table_, layout_);
    StepPrice price;
    std::vector<StagePrice> costs;
    for (const StageRows& stage : stages) costs.push_back(cost_of(stage));
    add_pipeline(costs, time, price);
    add_update(stages, costs, price);
    add_lateness(price);
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
    const double products = forward;
    const double attention = rates_.attention(row.attention_operations);
    forward += attention + rates_.moved(row.moved_bytes);
    backward += kAttentionBackward * attention + rates_.moved(row.moved_back_bytes);
    backward += accumulation(row, products);
    const auto exchanges = static_cast<double>(row.exchanges);
    const double exchange = exchanges * exchange_us(row);
    const double route = exposed_route(row, forward + backward);
    const double ring_attention = ring_attention_us(row);
    const double communication = exchange + route + ring_attention + shared_experts_us(row);
    const double kernels = static_cast<double>(row.kernels) + kExchangeKernels * exchanges;
    StagePrice cost;
    const double back_kernels = kernels * kBackwardKernels, experts = expert_products(row);
    const double each = layout_.graphs ? 0 : constants_.forward_launch;
    const double back_each = layout_.graphs ? 0 : constants_.backward_launch;
    const double narrowing = is_narrow() ? experts * each : 0;
    const double launches = kernels * each + experts * back_each + narrowing;
    const double back_launches = (back_kernels + kBackProducts * experts) * back_each + narrowing;
    cost.forward = with_launches(forward + communication + kernels * constants_.gap, launches);
    cost.backward =
        with_launches(backward + communication + back_kernels * constants_.gap, back_launches);
    const bool is_block = row.name != "embedding" && row.name != "head";
    const double share = recompute_ == Recompute::full && is_block ? layout_.recompute_share : 0;
    // Other calls for exchanges delay the device only if the lead that the host gains in the rest
    // of the layer does not make up for them.
    const double calls = framework_.calls * exchanges;
    const double host = (1 + share) * (launches + calls * each) + back_launches +
                        calls * kBackwardKernels * back_each;
    const double passes = (1 + share) * cost.forward + cost.backward;
    const double longer = std::max(1., host / passes);
    cost.forward *= longer, cost.backward *= longer;
    cost.recompute = share * cost.forward + (is_block ? selected_again(row) : 0);
    cost.tensor_part = communication * (2 + share);
    const double again = is_block && recompute_ == Recompute::selective ? 1 : share;
    cost.attention = attention * (1 + kAttentionBackward + again);
    if (row.expert_parameters > 0)
      cost.experts = cost.forward + cost.backward + cost.recompute - cost.attention;
    if (longer > 1 || cost.forward <= launches) cost.host += (1 + share) * cost.forward;
    if (longer > 1 || cost.backward <= back_launches) cost.host += cost.backward;
    return cost;
  }

  /// The part that the backward pass of a block repeats if not all of it.
  double selected_again(const LayerRow& row) const {
    if (recompute_ != Recompute::selective && recompute_ != Recompute::pointwise) return 0;
    double scores = 0;
    for (const Gemm& gemm : row.gemms) scores += gemm.has_weights ? 0 : rates_.forward(gemm);
    return scores + (recompute_ == Recompute::selective ? rates_.attention(row.attention_operations)
                                                        : rates_.moved(row.moved_bytes));
  }

  /// Share of the copies of a token for its experts that are left if each of `groups` of ranks gets
  /// one at most: experts are chosen evenly, none twice.
  static double distinct_share(const LayerRow& row, double groups) {
    double none = 1;  // Probability that a group has none of them.
    for (double chosen = 0; chosen < row.active_experts; ++chosen)
      none *= std::max(0., row.experts - row.experts / groups - chosen) / (row.experts - chosen);
    return std::min(1., groups * (1 - none) / row.active_experts);
  }

  /// To the experts and back.
  double route_us(const LayerRow& row) const {
    if (row.routed.count <= 0) return 0;
    const auto ranks = static_cast<double>(layout_.expert);
    const double nodes = std::max(1., ranks / static_cast<double>(platform_.per_node));
    const bool is_distinct = layout_.dispatcher == "deepep";
    const auto share = [&](double groups) { return is_distinct ? distinct_share(row, groups) : 1; };
    return 2 * rates_.all_to_all(layout_.expert, static_cast<double>(row.routed.count),
                                 share(ranks), share(nodes));
  }

  /// Ranks that share experts gather what each of them has received, and scatter the sums.
  double shared_experts_us(const LayerRow& row) const {
    const auto bytes = static_cast<double>(row.routed_together.count);
    return bytes > 0 ? 2 * rates_.all_gather(layout_.of_expert(), 1, bytes) : 0;
  }

  /// The part of it that `passes` of the layer, forward and backward, do not hide if the forward
  /// passes of a micro-batch run beside the backward passes of another; the first of a pipeline
  /// have none beside them.
  double exposed_route(const LayerRow& row, double passes) const {
    const double route = route_us(row);
    if (!layout_.overlaps_dispatch) return route;
    const double alone =
        static_cast<double>(layout_.pipeline) / static_cast<double>(layout_.micro_batches());
    return std::min(route, std::max(route - passes / 2, alone * route));
  }

  bool is_narrow() const { return layout_.precision == "fp8" || layout_.precision == "fp4"; }

  /// Products that Transformer Engine launches one by one for the experts of a device, beyond one
  /// for all of them. Its loop is C++, which launches as fast as a backward pass does; narrow
  /// inputs are made in Python, as other kernels of the forward pass are. Other programs group
  /// products.
  double expert_products(const LayerRow& row) const {
    double products = 0;
    for (const Gemm& gemm : row.gemms) products += gemm.has_weights ? gemm.count - 1 : 0;
    return uses_engine(layout_) ? products : 0;
  }

  /// The host launches ahead of the device, unless it waits for each kernel.
  double with_launches(double device, double host) const {
    return layout_.blocking_launches ? device + host : std::max(device, host);
  }

  /// Every micro-batch adds its gradients to the sum, whatever its size. Where products are written
  /// while others are computed, those that add them hide it; `products` is how long they take.
  double accumulation(const LayerRow& row, double products) const {
    if (layout_.lora || layout_.micro_batches() == 1) return 0;
    const double us =
        rates_.moved(constants_.accumulate * (row.parameters + row.expert_parameters));
    const bool is_hidden = platform_.writes_beside_products && uses_engine(layout_);
    return is_hidden ? std::max(0., us - products) : us;
  }

  /// A sum over tensor parallel ranks; with sequence parallelism, its two halves run separately.
  double exchange_us(const LayerRow& row) const {
    const auto bytes = static_cast<double>(row.exchanged.count);
    const double us = layout_.sequence_parallel ? 2 * rates_.all_gather(layout_.tensor, 1, bytes)
                                                : rates_.all_reduce(layout_.tensor, 1, bytes);
    return layout_.overlaps_exchanges ? us * (1 - kHiddenExchange) : us;
  }

  /// Ring attention passes keys and values between the context ranks; the attention on those
  /// already present hides the transfer.
  double ring_attention_us(const LayerRow& row) const {
    if (layout_.context <= 1 || row.attention_operations <= 0) return 0;
    const double bytes =
        static_cast<double>(row.keys_and_values.count) * static_cast<double>(layout_.context);
    const double gather = rates_.all_gather(layout_.context, layout_.tensor, bytes);
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
      sum.host += count * one.host, sum.attention += count * one.attention;
      sum.experts += count * one.experts;
    }
    const double passes = sum.forward + sum.backward;
    if (sharded_in_passes(layout_) == 2 && !layout_.lora) scatter_gradients(stage, sum);
    if (layout_.zero >= 3) gather_weights(stage, sum);
    sum.sharding = sum.forward + sum.backward - passes;
    if (layout_.pipeline > 1) {
      const double bytes =
          static_cast<double>(table_[1].output.count) / static_cast<double>(layout_.tensor);
      sum.send = rates_.send(bytes);
    }
    return sum;
  }

  /// Sharded gradients cannot be accumulated whole: each micro-batch scatters its own, overlapping
  /// the backward pass of the layers before. Those of the first layer of a rank overlap nothing.
  void scatter_gradients(const StageRows& stage, StagePrice& cost) const {
    const double experts = experts_of(table_, stage);
    const double scatter =
        shards_us(parameters_of(table_, stage) - experts, experts, gradient_bytes(layout_), 1, 0);
    const double hides = layout_.overlaps_gradients ? cost.backward + cost.recompute : 0;
    const double layers =
        std::max(1., layers_of(stage)) * static_cast<double>(layout_.virtual_stages);
    cost.backward += std::max(0., scatter - hides) + scatter / layers;
  }

  /// Sharded weights are gathered before each pass, and gradients scattered after it; both overlap
  /// the passes of neighboring layers.
  void gather_weights(const StageRows& stage, StagePrice& cost) const {
    const double experts = experts_of(table_, stage);
    const double gather =
        shards_us(parameters_of(table_, stage) - experts, experts, kWeightBytes, 1, 0);
    if (!layout_.overlaps_gradients) {
      cost.forward += gather;
      cost.backward += gather + shards_us(parameters_of(table_, stage) - experts, experts,
                                          gradient_bytes(layout_), 1, 0);
      return;
    }
    const double layers = std::max(1., layers_of(stage));
    cost.forward = std::max(cost.forward, gather) + gather / layers;
    cost.backward =
        std::max(cost.backward + cost.recompute, 2 * gather) - cost.recompute + gather / layers;
  }

  void add_pipeline(const std::vector<StagePrice>& costs, PipelineTime time, StepPrice& price) {
    const auto m = static_cast<double>(layout_.micro_batches());
    const auto stages = static_cast<double>(layout_.pipeline);
    const Layout filled = layout_.between_flushes();
    price.step = static_cast<double>(layout_.flushes) * (time == PipelineTime::replayed
                                                             ? pipelines_.us(costs, filled)
                                                             : pipelines_.at_least(costs, filled));
    for (const StagePrice& cost : costs) {
      price.compute += m / stages * (cost.forward + cost.backward + cost.recompute);
      price.tensor += m / stages * cost.tensor_part;
      price.host += m / stages * cost.host, price.attention += m / stages * cost.attention;
      price.experts += m / stages * cost.experts;
      price.gradients += m / stages * cost.sharding;
      if (layout_.pipeline > 1) price.sends += 2 * m / stages * cost.send;
    }
    price.compute -= price.tensor + price.gradients;
    // Passes of other micro-batches hide sends; what they do not hide is no bubble.
    const double idle = std::max(0., price.step - price.compute - price.tensor - price.gradients);
    price.sends = std::min(price.sends, idle);
    price.bubble = idle - price.sends;
  }

  /// Hosts differ from step to step, and all wait for the latest, as `scale` has it for workers.
  void add_lateness(StepPrice& price) const {
    const std::int64_t per_host = platform_.per_host;
    const std::int64_t hosts = (layout_.devices() + per_host - 1) / per_host;
    price.late = expected_greatest(hosts) * constants_.late * price.step;
    price.step += price.late;
  }

  /// Adds the sums of gradients and the optimizer of the stage that takes longest.
  void add_update(const std::vector<StageRows>& stages, const std::vector<StagePrice>& costs,
                  StepPrice& price) const {
    if (layout_.lora) return;
    const PipelineShape& shape = pipelines_.shape(layout_);
    double most = 0, slowest = 0;
    for (const RankPlan& rank : shape.ranks) {
      double parameters = 0, experts = 0, forward = 0, backward = 0;
      std::int64_t pipelines = 1;
      for (const auto& [i, share] : rank.parts) {
        parameters += parameters_of(table_, stages[i]) - experts_of(table_, stages[i]);
        experts += experts_of(table_, stages[i]);
        forward += costs[i].forward, backward += costs[i].backward + costs[i].recompute;
        pipelines = shape.copies[i];
      }
      const auto shards = [&](std::int64_t ranks) {
        return layout_.zero >= 1 ? static_cast<double>(std::max<std::int64_t>(1, ranks)) : 1;
      };
      Exchange sums = gradient_us(parameters, experts, pipelines);
      if (layout_.overlaps_gradients && shape.flushes)
        sums = {exposed(sums.gather, forward), exposed(sums.scatter, backward)};
      double gradients = shape.updates * (sums.gather + sums.scatter);
      if (layout_.overlaps_gradients && !shape.flushes)
        gradients = std::max(0., gradients - price.step);
      const double updated = parameters / shards(layout_.shards()) +
                             experts / shards(expert_copies(1) / layout_.replicas);
      const double optimizer =
          shape.updates * (layout_.host_optimizer ? rates_.offloaded(updated)
                                                  : rates_.moved(constants_.optimizer * updated));
      most = std::max(most, gradients), slowest = std::max(slowest, optimizer);
    }
    price.gradients += most, price.optimizer = slowest;
    price.step += most + slowest;
  }

  /// The part of a transfer that passes of a rank, `pass` long for one micro-batch, do not hide.
  /// With several chunks, those that are done first are sent while all micro-batches of a round of
  /// the pipeline pass the others.
  double exposed(double us, double pass) const {
    const auto chunks = static_cast<double>(layout_.virtual_stages);
    const auto round = static_cast<double>(layout_.pipeline);
    const double hides = pass / chunks * (1 + round * (chunks - 1));
    return std::max({us - hides, (us - pass) / chunks, kLastBucket * us});
  }

  /// Transfers before and after the update of a step.
  struct Exchange {
    double gather = 0, scatter = 0;
  };

  /// Ranks with a copy of a weight, `tp` apart, and of an expert, `ep` apart: the ranks of a stage
  /// that are next to each other have different experts.
  std::int64_t copies(std::int64_t pipelines) const {
    return layout_.data * layout_.context * pipelines;
  }
  std::int64_t expert_copies(std::int64_t pipelines) const {
    return std::max<std::int64_t>(1, copies(pipelines) * layout_.tensor / expert_stride());
  }
  std::int64_t expert_stride() const { return layout_.expert * layout_.of_expert(); }

  static double chunks(double bytes, double bucket) { return bucket > 0 ? bytes / bucket : 1; }

  /// Gathers or scatters `each` bytes of every weight among the ranks that have shards of it.
  double shards_us(double parameters, double experts, double each, std::int64_t pipelines,
                   double bucket) const {
    const double dense = parameters * each, routed = experts * each;
    const auto ranks = [&](std::int64_t copies) {
      return std::max<std::int64_t>(1, copies / layout_.replicas);
    };
    return rates_.all_gather(ranks(copies(pipelines)), layout_.tensor, dense,
                             chunks(dense, bucket)) +
           rates_.all_gather(ranks(expert_copies(pipelines)), expert_stride(), routed,
                             chunks(routed, bucket));
  }

  /// Groups that each have all shards sum theirs.
  double sum_of_replicas_us(double parameters, double experts, double bytes) const {
    const auto shards = static_cast<double>(layout_.shards());
    return rates_.all_reduce(layout_.replicas, layout_.tensor * layout_.shards(),
                             (parameters + experts) * bytes / shards);
  }

  /// Gradients that were scattered with each micro-batch leave only the weights to be gathered.
  /// `pipelines` is the number of pipelines with a copy of the weights.
  Exchange gradient_us(double parameters, double experts, std::int64_t pipelines) const {
    const double bytes = gradient_bytes(layout_), bucket = framework_.bucket;
    Exchange us;
    if (layout_.zero >= 1 && layout_.replicas > 1)
      us.scatter = sum_of_replicas_us(parameters, experts, bytes);
    if (layout_.zero >= 3) return us;
    if (layout_.zero >= 1) {
      us.gather = shards_us(parameters, experts, kWeightBytes, pipelines, bucket);
      if (sharded_in_passes(layout_) == 1)
        us.scatter += shards_us(parameters, experts, bytes, pipelines, bucket);
    } else {
      us.scatter = rates_.all_reduce(copies(pipelines), layout_.tensor, parameters * bytes,
                                     chunks(parameters * bytes, bucket)) +
                   rates_.all_reduce(expert_copies(pipelines), expert_stride(), experts * bytes);
    }
    if (layout_.pipeline > 1) {  // The first and last stage share the embedding.
      us.scatter += rates_.all_reduce(2, layout_.devices() / 2, table_.front().parameters * bytes) *
                    (table_.back().all_parameters < table_.front().parameters ? 1 : 0);
    }
    return us;
  }

  const Workload& workload_;
  const Layout& layout_;
  const Platform& platform_;
  const Constants& constants_;
  Pipelines& pipelines_;
  Rates rates_;
  Recompute recompute_;
  LayerTable table_;
  const Framework& framework_;
  std::vector<std::optional<StagePrice>> layer_costs_;
};

}  // namespace

double least_us(const Workload& workload, const Layout& layout, const Platform& platform) {
  // The backward pass has two products for each of the forward pass, with frozen weights one.
  const double passes = layout.lora ? 2 : 3;
  double operations = 0;
  for (const LayerRow& row : workload.layers(slice_of(layout))) {
    for (const Gemm& gemm : row.gemms) {
      if (gemm.has_weights)
        operations +=
            2 * gemm.rows * gemm.columns * gemm.inner * gemm.count * static_cast<double>(row.count);
    }
  }
  const double all = operations * static_cast<double>(layout.micro_batches());
  const double peak = sheet_peak(platform.device, layout.precision) * 1e-6;
  return passes * all / static_cast<double>(layout.pipeline) / std::max(peak, 1.);
}

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
  return memory_need(table, split_stages(table, layout), layout,
                     impl_->pipelines.shape(layout.between_flushes()));
}

Layout StepPricer::fitting(const Workload& workload, Layout layout, const Platform& platform) {
  constexpr std::tuple<const char*, double> kMinFirst[] = {
      {"none", 1}, {"pointwise", 1}, {"full", .25}, {"full", .5}, {"full", .75}, {"full", 1}};
  for (const auto& [recompute, share] : kMinFirst) {
    layout.recompute = recompute, layout.recompute_share = share;
    if (!runs_out(memory(workload, layout), platform)) break;
  }
  return layout;
}

}  // namespace foretrace
