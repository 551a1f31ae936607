#include "price/price.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "foretrace/error.h"
#include "price/calibration.h"
#include "price/pipeline.h"
#include "price/rates.h"
#include "price/stages.h"
#include "schedule/schedule.h"
#include "support/folder.h"

namespace foretrace {
namespace {

constexpr const char* kSmallModel = "transformer:layers=24,hidden=2048,heads=16,vocabulary=51200";

MeasuredStep step_with(std::int64_t tensor, std::int64_t micro_batch, double us) {
  MeasuredStep step{.name = "a step"};
  step.workload = find_workload(kSmallModel);
  step.layout.tensor = tensor, step.layout.micro_batch = micro_batch;
  step.layout.global_batch = 16;
  step.platform = find_platform("dgx-a100");
  step.us = us;
  return step;
}

StepPrice price_with(const std::string& model, const Layout& layout,
                     const std::string& machine = "dgx-a100") {
  return StepPricer().price(*find_workload(model), layout, find_platform(machine), Constants{});
}

std::string refusal_of_layout(const Layout& layout) {
  try {
    price_with(kSmallModel, layout);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Price, PartsOfAStepSumToIt) {
  Layout layout;
  layout.tensor = 2, layout.pipeline = 4, layout.data = 2, layout.global_batch = 64;
  layout.overlaps_gradients = false;
  const StepPrice price = price_with(kSmallModel, layout);
  EXPECT_NEAR(price.compute + price.tensor + price.bubble + price.sends + price.gradients +
                  price.optimizer + price.late + price.other,
              price.step, 1e-6 * price.step);
  EXPECT_GT(price.bubble, 0);
  EXPECT_GT(price.tensor, 0);
}

TEST(Price, SlowLinksMakeNoComputation) {
  Layout layout;
  layout.tensor = 8, layout.pipeline = 4, layout.data = 2, layout.global_batch = 64;
  const auto on_links = [&](double share) {
    Platform platform = find_platform("dgx-a100");
    platform.across.bytes_per_second *= share;
    return StepPricer().price(*find_workload(kSmallModel), layout, platform, Constants{});
  };
  for (layout.zero = 1; layout.zero <= 3; layout.zero += 2) {
    const StepPrice fast = on_links(1), slow = on_links(.001);
    EXPECT_NEAR(slow.compute, fast.compute, 1e-6 * fast.compute);
    EXPECT_GE(slow.bubble, 0);
    EXPECT_GT(slow.sends + slow.gradients, .8 * slow.step);
    EXPECT_NEAR(slow.compute + slow.tensor + slow.bubble + slow.sends + slow.gradients +
                    slow.optimizer + slow.late + slow.other,
                slow.step, 1e-6 * slow.step);
  }
}

TEST(Price, GathersOfShardsWaitIfNothingOverlaps) {
  Layout layout;
  layout.data = 64, layout.global_batch = 64, layout.zero = 3;
  const StepPrice beside = price_with(kSmallModel, layout);
  layout.overlaps_gradients = false;
  const StepPrice behind = price_with(kSmallModel, layout);
  EXPECT_NEAR(behind.compute, beside.compute, 1e-6 * behind.compute);
  EXPECT_GT(behind.gradients, 2 * beside.gradients);
  layout.zero = 2;
  EXPECT_LT(price_with(kSmallModel, layout).step, behind.step);
}

TEST(Price, AFlushMoreFillsThePipelineAgain) {
  Layout layout;
  const auto passes = [&](std::int64_t batch, std::int64_t flushes) {
    layout.pipeline = 4, layout.global_batch = batch, layout.flushes = flushes;
    const StepPrice price = price_with(kSmallModel, layout);
    return price.compute + price.bubble + price.sends;
  };
  EXPECT_GT(passes(32, 4), 1.2 * passes(32, 1));
  EXPECT_NEAR(passes(32, 4), 4 * passes(8, 1), 1e-3 * passes(32, 4));
  layout.flushes = 3;
  EXPECT_EQ(refusal_of_layout(layout),
            "flushes: must divide the micro-batches of a rank, 32, got 3");
}

TEST(Price, GroupsWithAllShardsSumTheirs) {
  Layout layout;
  layout.data = 16, layout.global_batch = 16, layout.zero = 3;
  const auto gigabytes = [&] {
    return static_cast<double>(
               StepPricer().memory(*find_workload(kSmallModel), layout).allocated.count) /
           1e9;
  };
  const double whole = gigabytes();
  const double sums = price_with(kSmallModel, layout).gradients;
  layout.replicas = 2;  // Each has twice the shard: weights, gradients and state of 18 bytes.
  const double p = find_workload(kSmallModel)->parameters();
  EXPECT_NEAR(gigabytes() - whole, p * 18 / 16 / 1e9, .01 * whole);
  EXPECT_GT(price_with(kSmallModel, layout).gradients, sums);
  layout.replicas = 3;
  EXPECT_EQ(refusal_of_layout(layout), "replicas: must divide dp x cp, 16, got 3");
}

TEST(Price, ALongerSequenceIsNeverFaster) {
  const auto step = [](const char* sequence) {
    Layout layout;
    layout.tensor = 8, layout.global_batch = 2, layout.recompute = "full";
    layout.framework = "nanotron";
    return price_with(std::string("transformer:layers=24,hidden=1024,heads=8,sequence=") + sequence,
                      layout)
        .step;
  };
  EXPECT_GE(step("1024"), step("256") * (1 - 1e-9));
  EXPECT_GE(step("4096"), step("1024") * (1 - 1e-9));
}

TEST(Price, EveryMicroBatchAddsItsGradientsToTheSum) {
  const auto compute = [](std::int64_t batch, double bytes) {
    Layout layout;
    layout.global_batch = batch;
    Constants constants;
    constants.accumulate = bytes;
    const auto model = find_workload(kSmallModel);
    return StepPricer().price(*model, layout, find_platform("dgx-a100"), constants).compute;
  };
  // 24 x 12 x 2048^2 parameters and two tables. With one micro-batch there is no gradient to add
  // to.
  const double each = (compute(2, 8) - compute(2, 0)) / 2;
  EXPECT_NEAR(each,
              8 * (24 * 12 * 2048. * 2048 + 2 * 51200. * 2048) / (2.039e6 * Constants{}.moved), 60);
  EXPECT_NEAR(compute(4, 8) - compute(4, 0), 4 * each, 1);
  EXPECT_EQ(compute(1, 8), compute(1, 0));
}

TEST(Price, BlockingLaunchesCostTheirHostTimeForEveryMicroBatch) {
  const auto more = [](std::int64_t micro_batch) {
    Layout layout;
    layout.micro_batch = micro_batch, layout.global_batch = 16;
    const double beside = price_with(kSmallModel, layout).step;
    layout.blocking_launches = true;
    return price_with(kSmallModel, layout).step - beside;
  };
  EXPECT_GT(more(8), 0);
  EXPECT_NEAR(more(4) / more(8), 2, .01);
}

TEST(Price, GraphsLeaveTheTimeOfTheDevice) {
  const auto price = [](const char* model, bool graphs) {
    Layout layout;
    layout.graphs = graphs;
    return price_with(model, layout);
  };
  constexpr const char* kTiny = "transformer:layers=24,hidden=256,heads=4,sequence=128";
  const StepPrice eager = price(kTiny, false), captured = price(kTiny, true);
  EXPECT_LT(captured.step, .8 * eager.step);
  EXPECT_NEAR(eager.host / (eager.step - eager.optimizer - eager.other), 1, .2);
  EXPECT_EQ(captured.host, 0);
  constexpr const char* kWide = "transformer:layers=4,hidden=8192,heads=64,sequence=2048";
  // Only the embedding is too small for its launches.
  EXPECT_NEAR(price(kWide, true).step / price(kWide, false).step, 1, .001);
  Layout both;
  both.graphs = both.blocking_launches = true;
  EXPECT_THROW(both.check(), Error);
}

TEST(Price, TransformerEngineLaunchesProductsOfExpertsOneByOne) {
  const auto forward_of = [](std::int64_t experts, const char* framework, const char* precision) {
    Layout layout;
    layout.framework = framework, layout.precision = precision;
    const std::string model =
        "transformer:layers=8,hidden=256,heads=4,sequence=128,expert_ffn=128,active_experts=2,"
        "experts=" +
        std::to_string(experts);
    return price_with(model, layout, "dgx-h100").compute;
  };
  const Constants constants;
  // Two products of each expert, once in the forward pass and twice in the backward pass.
  const double launches = 8 * 2 * 32 * 3 * constants.backward_launch;
  EXPECT_NEAR(forward_of(64, "megatron", "bf16") - forward_of(32, "megatron", "bf16"), launches, 1);
  EXPECT_NEAR(forward_of(64, "megatron", "fp8") - forward_of(32, "megatron", "fp8"),
              launches + 8 * 2 * 2 * 32 * constants.forward_launch, 1);
  EXPECT_EQ(forward_of(64, "fsdp", "bf16"), forward_of(32, "fsdp", "bf16"));
}

TEST(Price, SumsBesidePassesOnlyWhereTheyMayOverlap) {
  Layout layout;
  layout.pipeline = 4, layout.data = 16, layout.global_batch = 64;
  layout.schedule = "pipedream_2bw";
  const double beside = price_with(kSmallModel, layout).gradients;
  layout.overlaps_gradients = false;
  EXPECT_GT(price_with(kSmallModel, layout).gradients, beside);
}

TEST(Price, WithoutAFlushThePipelineIsFullAllTheTime) {
  Layout layout;
  layout.pipeline = 8, layout.global_batch = 16;
  const StepPrice flushed = price_with(kSmallModel, layout);
  layout.schedule = "pipedream_2bw";
  const StepPrice full = price_with(kSmallModel, layout);
  layout.global_batch = 32;
  const StepPrice twice = price_with(kSmallModel, layout);
  // 16 micro-batches take 16 slots of the longest stage instead of 23.
  const double flushed_slots = flushed.step - flushed.gradients - flushed.optimizer - flushed.other;
  const double full_slots = full.step - full.gradients - full.optimizer - full.other;
  EXPECT_LT(full_slots, .8 * flushed_slots);
  const double twice_slots = twice.step - twice.gradients - twice.optimizer - twice.other;
  EXPECT_NEAR(twice_slots, 2 * full_slots, 1e-3 * twice_slots);
}

TEST(Price, AShortRunDrainsItsPipelineLikeAFlush) {
  Layout layout;
  layout.pipeline = 8, layout.global_batch = 16;
  const auto passes = [&](const std::string& schedule, std::int64_t drain_after) {
    layout.schedule = schedule, layout.drain_after = drain_after;
    const StepPrice price = price_with(kSmallModel, layout);
    return price.step - price.late - price.gradients - price.optimizer - price.other;
  };
  const double flushed = passes("1f1b", 0), full = passes("pipedream_2bw", 0);
  // Drained after each batch, nothing is left of what the missing flush gains.
  EXPECT_NEAR(passes("pipedream_2bw", 1), flushed, .005 * flushed);
  EXPECT_NEAR(passes("pipedream_2bw", 4), full + (flushed - full) / 4, .005 * flushed);
  layout.schedule = "1f1b";
  EXPECT_THROW(price_with(kSmallModel, layout), Error);
}

TEST(Price, GradientsAreSummedWithEachUpdateOfPipedream) {
  Layout layout;
  layout.pipeline = 4, layout.data = 16, layout.global_batch = 16 * 16;
  layout.schedule = "pipedream_2bw";
  const StepPrice once = price_with(kSmallModel, layout);
  layout.schedule = "pipedream";
  const StepPrice each = price_with(kSmallModel, layout);
  EXPECT_NEAR(each.optimizer, 16 * once.optimizer, 1e-6 * each.optimizer);
  EXPECT_GT(each.gradients, once.gradients);
}

TEST(Price, ARankHoldsAllVersionsOfItsWeights) {
  const auto weights = [](const std::string& schedule) {
    Layout layout;
    layout.pipeline = 4, layout.global_batch = 16, layout.schedule = schedule;
    for (const auto& [name, bytes] : StepPricer().memory(*find_workload(kSmallModel), layout).parts)
      if (name == "weights") return static_cast<double>(bytes.count);
    return 0.;
  };
  EXPECT_NEAR(weights("pipedream_2bw"), 2 * weights("1f1b"), 1e-6 * weights("1f1b"));
  EXPECT_GT(weights("pipedream"), 2.5 * weights("1f1b"));
}

TEST(Price, HostsOfOneDeviceSendOverTheirNetwork) {
  Layout layout;
  layout.data = 8, layout.global_batch = 64;
  const Folder folder;
  const std::string machine = folder.write(
      "boxes.json", R"({"device": "a100-sxm4-80gb", "hosts": 8, "host": {"devices": ["gpu"]},
                        "network": {"use": "switch", "bandwidth": "10GB/s", "latency": "1us"}})");
  const StepPrice price = price_with(kSmallModel, layout, machine);
  EXPECT_GT(price.step, price_with(kSmallModel, layout).step);
  EXPECT_LT(price.step, 1e9);
}

TEST(Price, AStepComputesNoFasterThanItsDevices) {
  Layout layout;
  layout.global_batch = 16, layout.micro_batch = 4;
  const StepPrice price = price_with(kSmallModel, layout);
  const double devices = find_platform("dgx-a100").device.bf16.flops_per_second;
  EXPECT_LT(price.operations / (price.step * 1e-6), devices);
}

TEST(Price, AWaveMoreTakesAWaveLonger) {
  const Platform platform = find_platform("dgx-a100");
  const Layout layout;
  const Constants constants;
  const Rates rates(platform, layout, constants);
  // 108 multiprocessors; 54 x 2 tiles of 256 x 128 fill them once.
  const double full = rates.product(54. * 256, 256, 4096, 1, true);
  const double more = rates.product(54. * 256 + 256 * 54, 256, 4096, 1, true);
  EXPECT_NEAR(more / full, 2, .01);
  EXPECT_GT(rates.product(55. * 256, 256, 4096, 1, true), full * 1.05);
}

// Rows of operands are as long as the layer is wide: how many tokens there are changes nothing.
TEST(Price, ProductsOfOddWidthsTakeLongerWhateverTheTokens) {
  const Platform platform = find_platform("dgx-a100");
  const Layout layout;
  const Constants constants;
  const Rates rates(platform, layout, constants);
  const auto time = [&](double tokens, double inner) {
    const Gemm gemm{tokens, 4096, inner, 1, true};
    return std::pair(rates.forward(gemm), rates.backward(gemm));
  };
  const auto [forward, backward] = time(4096, 4096);
  const auto [odd_forward, odd_backward] = time(4096, 4092);
  EXPECT_NEAR(odd_forward / forward, constants.misaligned, .1);
  EXPECT_NEAR(odd_backward / backward, constants.misaligned, .1);
  EXPECT_NEAR(time(4092, 4096).second / backward, 1, .01);
}

/// The step of a layout on a machine whose NICs are `share` as fast.
double with_nics(const std::string& model, const Layout& layout, double share) {
  Platform platform = find_platform("dgx-h100");
  platform.across.bytes_per_second *= share;
  return StepPricer().price(*find_workload(model), layout, platform, Constants{}).step;
}

TEST(Price, ShardsOfExpertsMoveBetweenTheRanksThatHaveThem) {
  Layout layout;
  layout.data = 64, layout.expert = 8, layout.global_batch = 64, layout.micro_batch = 1;
  layout.recompute = "full", layout.zero = 1;
  const double shards_state = price_with("qwen3-235b-a22b", layout, "aws-p4d").step;
  layout.zero = 3;
  EXPECT_NEAR(price_with("qwen3-235b-a22b", layout, "aws-p4d").step / shards_state, 1, .05);
}

TEST(Price, ExpertsOfTensorParallelRanksOnOneHostNeedNoNic) {
  Layout layout;
  layout.tensor = 8, layout.expert = 8, layout.global_batch = 16, layout.recompute = "full";
  EXPECT_EQ(with_nics("mixtral-8x7b", layout, .001), with_nics("mixtral-8x7b", layout, 1));
}

TEST(Price, StagesOnSeveralHostsSendOverTheirNics) {
  Layout layout;
  layout.pipeline = 16, layout.global_batch = 64, layout.micro_batch = 1, layout.recompute = "full";
  EXPECT_GT(with_nics("llama3-8b", layout, .01), with_nics("llama3-8b", layout, 1) * 1.1);
}

TEST(Price, CollectivesFollowTheRing) {
  const Platform platform = find_platform("dgx-a100");
  const Layout layout;
  Constants constants;
  constants.exchange = 0, constants.exchange_across = 0, constants.within = 1, constants.across = 1;
  const Rates rates(platform, layout, constants);
  const double within = platform.within.bytes_per_second * 1e-6;
  EXPECT_NEAR(rates.all_reduce(8, 1, 1e9), 2. * 7 / 8 * 1e9 / within, 1);
  EXPECT_NEAR(rates.all_gather(8, 1, 1e9), 7. / 8 * 1e9 / within, 1);
  // 16 ranks, one on each of 16 nodes, and seven other such groups at the same time.
  const double across = platform.across.bytes_per_second * 1e-6;
  EXPECT_NEAR(rates.all_reduce(16, 8, 1e9), 2. * 15 / 16 * 1e9 / across, 1);
}

TEST(Price, FrozenWeightsHaveNoGradients) {
  const Platform platform = find_platform("dgx-a100");
  Layout layout;
  const Constants constants;
  const Rates all(platform, layout, constants);
  layout.lora = true;
  const Rates frozen(platform, layout, constants);
  const Gemm weights{.rows = 1024, .columns = 2048, .inner = 4096};
  EXPECT_EQ(frozen.backward(weights), all.product(1024, 4096, 2048, 1, true));
  EXPECT_GT(all.backward(weights), frozen.backward(weights));
  const Gemm scores{.rows = 1024, .columns = 2048, .inner = 4096, .has_weights = false};
  EXPECT_EQ(frozen.backward(scores), all.backward(scores));
}

TEST(Price, APipelineSendsForwardAndBack) {
  const Platform platform = find_platform("dgx-a100");
  Layout layout;
  layout.pipeline = 2, layout.global_batch = 8;
  const Constants constants;
  const LayerTable table = find_workload(kSmallModel)->layers(slice_of(layout));
  const double one =
      Rates(platform, layout, constants).send(static_cast<double>(table[1].output.count));
  EXPECT_NEAR(price_with(kSmallModel, layout).sends, 2 * 8 * one, 1e-6 * one);
}

TEST(Price, SelectiveRecomputationRepeatsTheAttention) {
  const Platform platform = find_platform("dgx-a100");
  Layout layout;
  layout.global_batch = 4;
  const Constants constants;
  const double without = price_with(kSmallModel, layout).compute;
  layout.recompute = "selective";
  const LayerTable table = find_workload(kSmallModel)->layers(slice_of(layout));
  const double attention =
      Rates(platform, layout, constants).attention(table[1].attention_operations);
  EXPECT_GT(attention, 0);
  EXPECT_NEAR(price_with(kSmallModel, layout).compute - without, 4 * 24 * attention, 1e-3);
}

// While the logits are in use, no other layer is at work.
TEST(Price, LogitsTakeThePlaceOfALayerAtWork) {
  const auto logits_or_layer = [](const std::string& vocabulary) {
    double bytes = 0;
    const auto model =
        find_workload("transformer:layers=4,hidden=1024,heads=8,vocabulary=" + vocabulary);
    for (const auto& [name, part] : StepPricer().memory(*model, Layout{}).parts)
      if (name == "logits" || name == "layer at work") bytes += static_cast<double>(part.count);
    return bytes;
  };
  EXPECT_GT(logits_or_layer("256"), 0);
  EXPECT_EQ(logits_or_layer("256"), logits_or_layer("512"));
}

TEST(Price, LongPipelinesAreFoldedExactly) {
  Layout layout;
  layout.pipeline = 4, layout.global_batch = 50;
  std::vector<StagePrice> costs = {{.forward = 100, .backward = 200, .send = 7},
                                   {.forward = 90, .backward = 210, .send = 7},
                                   {.forward = 100, .backward = 200, .send = 7},
                                   {.forward = 130, .backward = 260, .send = 7}};
  Pipelines pipelines;
  const double folded = pipelines.us(costs, layout);
  double whole = 0;  // The slowest stage, and the stages before and after it.
  for (const StagePrice& cost : costs) whole += cost.forward + cost.backward;
  EXPECT_NEAR(folded, whole + 6 * 7 + 49 * (130 + 260 + 7), 1);
}

TEST(Price, ABoundOfAPipelineIsNoLongerThanItsReplay) {
  std::mt19937 random(3);
  const auto any = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  const auto workload = find_workload(kSmallModel);
  const Platform platform = find_platform("dgx-a100");
  StepPricer pricer;
  std::map<std::string, double> closest;
  for (int run = 0; run < 1500; ++run) {
    Layout layout;
    layout.schedule = schedules()[random() % schedules().size()].name;
    layout.pipeline = any({1, 2, 3, 4, 6, 8}), layout.data = any({1, 2, 4});
    layout.virtual_stages = layout.pipeline > 1 ? any({1, 2, 3}) : 1;
    layout.recompute = any({0, 1}) == 0 ? "none" : "full";
    layout.zero = any({0, 1, 2, 3});
    layout.global_batch = layout.data * layout.pipeline * any({1, 2, 3, 8, 20});
    try {
      const double least =
          pricer.price(*workload, layout, platform, Constants{}, PipelineTime::at_least).step;
      const double step = pricer.price(*workload, layout, platform, Constants{}).step;
      EXPECT_LE(least, step) << layout.schedule << ' ' << layout.pipeline << " x "
                             << layout.virtual_stages << ", " << layout.micro_batches();
      double& near = closest[layout.schedule];
      near = std::max(near, least / step);
    } catch (const Error&) {  // The schedule does not support the layout.
    }
  }
  EXPECT_EQ(closest.size(), schedules().size());
  EXPECT_GT(closest["1f1b"], .9999);
}

TEST(Price, SplitsLayersOverStages) {
  Layout layout;
  layout.pipeline = 4;
  const LayerTable table = find_workload("transformer:layers=22,hidden=256,heads=4")->layers({});
  std::vector<double> layers;
  for (const StageRows& stage : split_stages(table, layout)) layers.push_back(layers_of(stage));
  EXPECT_EQ(layers, (std::vector<double>{7, 6, 5, 6}));  // With embedding and head at the ends.
  layout.embedding_is_layer = true;
  layers.clear();
  for (const StageRows& stage : split_stages(table, layout)) layers.push_back(layers_of(stage));
  EXPECT_EQ(layers, (std::vector<double>{6, 6, 6, 6}));
}

TEST(Price, NanotronsHeadTakesThePlaceOfLayers) {
  // The head costs as much as 4 of its 16 layers (the published 1B model): a stage is full above
  // its share of 20, and blocks without a cost follow the head.
  constexpr auto k1b =
      "transformer:layers=16,hidden=2048,heads=32,ffn=8192,vocabulary=131072,gated=true,tied=true,"
      "biases=false";
  const LayerTable table = find_workload(k1b)->layers({});
  Layout layout;
  layout.framework = "nanotron";
  const auto split = [&](std::int64_t pipeline) {
    layout.pipeline = pipeline;
    std::vector<double> layers;
    for (const StageRows& stage : split_stages(table, layout)) layers.push_back(layers_of(stage));
    layers.front() -= 1;  // The embedding.
    return layers;
  };
  EXPECT_EQ(split(2), (std::vector<double>{11, 5 + 1}));
  EXPECT_EQ(split(4), (std::vector<double>{6, 5, 5, 0 + 1}));
  EXPECT_EQ(split(8), (std::vector<double>{3, 3, 2, 3, 2, 3, 0 + 1, 0}));
  EXPECT_THROW(split(16), Error);
}

TEST(Price, KeepsActivationsOfMicroBatchesInFlight) {
  Layout layout;
  layout.pipeline = 4, layout.global_batch = 16, layout.recompute = "full";
  const auto activations = [&] {
    const char* small_head = "transformer:layers=24,hidden=2048,heads=16,vocabulary=1024";
    for (const auto& [name, bytes] :
         StepPricer().memory(*find_workload(small_head), layout).parts) {
      if (name == "activations") return bytes.count;
    }
    return std::int64_t{0};
  };
  const std::int64_t piped = activations();
  layout.schedule = "gpipe";
  EXPECT_EQ(activations(), 4 * piped);  // 16 micro-batches instead of 4.
}

TEST(Price, SequenceParallelSumsTakeTheirTwoHalves) {
  Layout layout;
  layout.tensor = 8;
  const double whole = price_with(kSmallModel, layout).tensor;
  layout.sequence_parallel = true;
  EXPECT_GT(price_with(kSmallModel, layout).tensor, 0.9 * whole);
}

TEST(Price, AttentionHidesTheExchangeOfKeysAndValues) {
  Layout layout;
  layout.context = 2;
  EXPECT_EQ(price_with("transformer:layers=4,hidden=1024,heads=16,sequence=32768", layout).tensor,
            0);
}

// So few positions are computed sooner than weights arrive: once for the forward pass, twice for
// the backward pass, and once more each for the layer that hides nothing.
TEST(Price, ShardedWeightsAreGatheredForEachPass) {
  Layout layout;
  layout.data = 64, layout.global_batch = 64, layout.zero = 3;
  const auto model = find_workload("transformer:layers=24,hidden=8192,heads=64,sequence=16");
  const Platform platform = find_platform("dgx-a100");
  const LayerTable table = model->layers(slice_of(layout));
  const StageRows all = split_stages(table, layout).front();
  const double gather =
      Rates(platform, layout, Constants{}).all_gather(64, 1, 2 * parameters_of(table, all));
  const auto price = [&](std::int64_t zero) {
    layout.zero = zero;
    return StepPricer().price(*model, layout, platform, Constants{});
  };
  const StepPrice sharded = price(3);
  EXPECT_GT(gather, price(1).compute);
  EXPECT_GT(sharded.compute + sharded.gradients, 3 * gather);
}

TEST(Price, ReservedMemoryIsMoreThanWhatIsAllocated) {
  const auto beside = [](const char* model) {
    const StepMemory need = StepPricer().memory(*find_workload(model), Layout{});
    return need.reserved - need.allocated;
  };
  const Bytes small = beside("transformer:layers=2,hidden=256,heads=4");
  EXPECT_GT(small, Bytes{});
  EXPECT_GT(beside(kSmallModel), small);
}

// GPipe keeps every micro-batch of a batch, however many there are.
TEST(Price, GpipesActivationsGrowWithMicroBatches) {
  const auto activations = [](std::int64_t micro_batches) {
    Layout layout;
    layout.pipeline = 4, layout.global_batch = micro_batches, layout.schedule = "gpipe";
    for (const auto& [name, bytes] : StepPricer().memory(*find_workload(kSmallModel), layout).parts)
      if (name == "activations") return bytes.count;
    return std::int64_t{0};
  };
  EXPECT_GT(activations(16), 0);
  EXPECT_EQ(activations(64), 4 * activations(16));
}

// Each of two tensor parallel ranks of four replicas has a quarter of the experts, so two ranks
// have the same: the optimizer's state of experts is halved, that of the other weights quartered.
TEST(Price, TensorRanksShardExpertsToo) {
  const auto model = find_workload(
      "transformer:layers=4,hidden=256,heads=4,vocabulary=1024,experts=8,active_experts=2");
  Layout layout;
  layout.tensor = 2, layout.expert = 4, layout.data = 4, layout.global_batch = 4, layout.zero = 1;
  const LayerTable table = model->layers(slice_of(layout));
  const StageRows all = split_stages(table, layout).front();
  const double experts = experts_of(table, all), others = parameters_of(table, all) - experts;
  EXPECT_GT(experts, others);
  const auto state = [&] {
    for (const auto& [name, bytes] : StepPricer().memory(*model, layout).parts)
      if (name == "optimizer state") return static_cast<double>(bytes.count);
    return 0.;
  };
  EXPECT_NEAR(state(), 12 * (others / 4 + experts / 2), 1);
  layout.expert_tensor = 2;  // Half of each expert, of which there is no other copy.
  EXPECT_NEAR(state(), 12 * (others / 4 + experts / 2), 1);
  layout.zero = 0;
  EXPECT_NEAR(state(), 12 * (others + experts / 2), 1);
  layout.expert_tensor = 0;
  EXPECT_NEAR(state(), 12 * (others + experts), 1);
  layout.expert = 1;  // All experts, which tensor parallel ranks share as they do other layers.
  EXPECT_NEAR(state(), 12 * (others + experts * 4 / 2), 1);
  layout.expert_tensor = 1;
  EXPECT_NEAR(state(), 12 * (others + experts * 4), 1);
  layout.expert_tensor = 4;
  EXPECT_EQ(refusal_of_layout(layout), "etp: must be 0, 1 or tp, 2, got 4");
}

TEST(Price, RanksThatShareExpertsGatherTheirTokens) {
  Layout layout;
  layout.tensor = 4, layout.expert = 2, layout.data = 2, layout.global_batch = 16;
  const double alone = price_with("mixtral-8x7b", layout).tensor;
  layout.expert_tensor = 4;
  EXPECT_GT(price_with("mixtral-8x7b", layout).tensor, 1.2 * alone);
}

// Sums over NVLink take less than the backward pass, which hides all of them but the last bucket.
TEST(Price, TheLastBucketOfGradientsOverlapsNothing) {
  Layout layout;
  layout.data = 8, layout.global_batch = 64;
  const StepPrice beside = price_with(kSmallModel, layout);
  layout.overlaps_gradients = false;
  const StepPrice behind = price_with(kSmallModel, layout);
  EXPECT_GT(behind.gradients, 0);
  EXPECT_LT(behind.gradients, behind.compute / 2);
  EXPECT_NEAR(beside.gradients, .05 * behind.gradients, 1e-6 * behind.gradients);
  EXPECT_NEAR(behind.step - beside.step, .95 * behind.gradients, 1e-6 * behind.step);
}

TEST(Price, BidirectionalPipelinesHoldTwoStages) {
  Layout layout;
  layout.pipeline = 4, layout.global_batch = 16;
  const auto weights = [&] {
    for (const auto& [name, bytes] :
         StepPricer().memory(*find_workload(kSmallModel), layout).parts) {
      if (name == "weights") return static_cast<double>(bytes.count);
    }
    return 0.;
  };
  const double one = weights();
  layout.schedule = "chimera";
  EXPECT_NEAR(weights() / one, 2, .2);
}

TEST(Price, ZeroDividesWhatReplicasShare) {
  Layout layout;
  layout.data = 8, layout.global_batch = 8;
  std::vector<std::int64_t> bytes;
  for (layout.zero = 0; layout.zero <= 3; ++layout.zero)
    bytes.push_back(StepPricer().memory(*find_workload(kSmallModel), layout).allocated.count);
  const double p = find_workload(kSmallModel)->parameters();
  EXPECT_NEAR(static_cast<double>(bytes[0] - bytes[1]) / (p * 12 * 7 / 8), 1, .01);
  EXPECT_NEAR(static_cast<double>(bytes[1] - bytes[2]) / (p * 4 * 7 / 8), 1, .01);
  EXPECT_NEAR(static_cast<double>(bytes[2] - bytes[3]) / (p * 2 * 7 / 8), 1, .01);
}

TEST(Price, RefusesWhatDoesNotDivide) {
  Layout layout;
  layout.data = 3, layout.global_batch = 16;
  EXPECT_EQ(refusal_of_layout(layout),
            "global_batch: must be a multiple of dp x micro_batch, 3 x 1, got 16");
  layout = {};
  layout.pipeline = 32, layout.global_batch = 32;
  EXPECT_EQ(refusal_of_layout(layout), "pp: must not exceed the layers, 24, got 32 x 1");
  layout = {};
  layout.virtual_stages = 2;
  EXPECT_EQ(refusal_of_layout(layout), "virtual_stages: must be 1 without a pipeline, got 2");
  layout = {};
  layout.precision = "fp64";
  EXPECT_EQ(refusal_of_layout(layout),
            "precision: must be one that a100-sxm4-80gb supports, got fp64");
}

TEST(StepCalibration, KeepsWhatWasMeasuredAndLittleElse) {
  StepCalibration none;
  const MeasuredStep asked = step_with(1, 1, 0);
  const CalibratedPrice usual = none.price(asked);
  EXPECT_EQ(usual.us, usual.price.step);
  EXPECT_FALSE(usual.is_covered);
  EXPECT_LT(usual.lower_us, usual.us);
  StepCalibration fitted({step_with(1, 1, usual.us * 1.2)});
  const CalibratedPrice near = fitted.price(asked), far = fitted.price(step_with(8, 8, 0));
  EXPECT_NEAR(near.us / usual.us, 1.2, .05);
  EXPECT_TRUE(near.is_covered);
  EXPECT_FALSE(far.is_covered);
  EXPECT_LT(near.upper_us / near.us, far.upper_us / far.us);
}

TEST(StepCalibration, ExpectsForeignStepsToBeSlowerRatherThanFaster) {
  const MeasuredStep asked = step_with(1, 1, 0), foreign = step_with(8, 8, 0);
  StepCalibration none, fitted({step_with(1, 1, none.price(asked).us)});
  for (const CalibratedPrice& priced : {none.price(asked), fitted.price(foreign)})
    EXPECT_GT(priced.upper_us / priced.us, 1.1 * priced.us / priced.lower_us);
  const CalibratedPrice covered = fitted.price(asked);
  EXPECT_NEAR(covered.upper_us / covered.us, covered.us / covered.lower_us, 1e-9);
}

TEST(Price, NanotronLaunchesMoreForEachExchange) {
  const auto us = [](const char* framework, std::int64_t tensor) {
    MeasuredStep step = step_with(tensor, 1, 0);
    step.workload = find_workload("transformer:layers=24,hidden=256,heads=8,sequence=128");
    step.layout.framework = framework;
    return StepCalibration().price(step).us;
  };
  EXPECT_GT(us("nanotron", 8), 1.5 * us("megatron", 8));
  EXPECT_LT(us("nanotron", 1), 1.1 * us("megatron", 1));
}

TEST(StepCalibration, DoubtsHostsThatWereNotMeasured) {
  const auto width = [](bool graphs) {
    MeasuredStep step = step_with(1, 1, 0);
    step.layout.graphs = graphs;
    step.workload = find_workload("transformer:layers=24,hidden=256,heads=4,sequence=128");
    const CalibratedPrice priced = StepCalibration().price(step);
    return priced.upper_us / priced.us;
  };
  EXPECT_GT(width(false), 1.3 * width(true));
}

TEST(StepCalibration, DoubtsKernelsOfAttentionAndExperts) {
  const auto width = [](const std::string& model) {
    MeasuredStep step = step_with(1, 1, 0);
    step.workload = find_workload(model);
    const CalibratedPrice priced = StepCalibration().price(step);
    return priced.us / priced.lower_us;
  };
  const std::string blocks = "transformer:layers=4,hidden=4096,heads=32,vocabulary=1024,sequence=";
  const double usual = width(blocks + "2048");
  EXPECT_GT(width(blocks + "131072"), 1.1 * usual);
  EXPECT_GT(width(blocks + "2048,experts=8,active_experts=2"), 1.1 * usual);
}

TEST(StepCalibration, ChoosesShapesThatDiffer) {
  std::vector<std::vector<double>> shapes;
  for (const std::int64_t tensor : {1, 1, 1, 8, 8, 2}) {
    MeasuredStep step = step_with(tensor, 1, 0);
    shapes.push_back(shape_of(step));
  }
  std::vector<std::size_t> chosen = chosen_shapes(shapes, 3);
  std::ranges::sort(chosen);
  EXPECT_EQ(chosen, (std::vector<std::size_t>{0, 3, 5}));
}

TEST(Price, ChunksHideTheOptimizersExchanges) {
  Layout layout;
  layout.pipeline = 4, layout.data = 64, layout.zero = 1, layout.global_batch = 64 * 8;
  const double whole = price_with(kSmallModel, layout).gradients;
  layout.virtual_stages = 3;
  EXPECT_LT(price_with(kSmallModel, layout).gradients, .8 * whole);
}

TEST(Price, SmallBucketsWaitForEveryHostOfARing) {
  Layout layout;
  layout.data = 256, layout.zero = 1, layout.global_batch = 256, layout.overlaps_gradients = false;
  const double many = price_with(kSmallModel, layout).gradients;
  layout.framework = "nanotron";
  EXPECT_GT(price_with(kSmallModel, layout).gradients, 1.5 * many);
}

TEST(Price, ProductsHideExchanges) {
  Layout layout;
  layout.tensor = 8;
  const double plain = price_with(kSmallModel, layout).tensor;
  layout.overlaps_exchanges = true;
  EXPECT_LT(price_with(kSmallModel, layout).tensor, .8 * plain);
}

TEST(Price, AHostThatKeepsTheOptimizerTakesTime) {
  Layout layout;
  layout.data = 8, layout.zero = 1, layout.global_batch = 8;
  const double device = price_with(kSmallModel, layout).optimizer;
  layout.host_optimizer = true;
  EXPECT_GT(price_with(kSmallModel, layout).optimizer, 5 * device);
}

TEST(Price, NarrowProductsReachWhatSingleOnesWereMeasuredTo) {
  Layout layout;
  layout.precision = "fp8";
  const double fused = price_with("llama3-8b", layout, "dgx-h100").compute;
  layout.framework = "torchtitan";
  EXPECT_GT(price_with("llama3-8b", layout, "dgx-h100").compute, 1.1 * fused);
  layout.precision = "fp4";
  EXPECT_THROW(price_with("llama3-8b", layout, "dgx-h100"), Error);
}

TEST(Price, NarrowingGradientsTakesTimeApart) {
  Layout layout;
  layout.precision = "fp8";
  const Platform platform = find_platform("dgx-h100");
  const Constants constants;
  const Gemm gemm{4096, 2048, 8192};
  const auto backward = [&](const char* framework) {
    layout.framework = framework;
    return Rates(platform, layout, constants).backward(gemm);
  };
  const Rates rates(platform, layout, constants);
  const double products = rates.product(gemm.rows, gemm.inner, gemm.columns, 1, true) +
                          rates.product(gemm.inner, gemm.columns, gemm.rows, 1, true);
  // Read in 2 bytes, and written in 1 for each of two products.
  EXPECT_NEAR(backward("megatron") - products, 4 * 4096 * 2048. / (3.35e6 * constants.moved), .01);
  EXPECT_GT(backward("torchtitan"), 1.1 * products);  // Measured with what narrows.
}

TEST(Price, ProductsOfHopperHideTheSumOfGradients) {
  const auto each = [](const char* machine, const char* framework) {
    Layout layout;
    layout.framework = framework;
    const auto compute = [&](std::int64_t batch, double bytes) {
      layout.global_batch = batch;
      Constants constants;
      constants.accumulate = bytes;
      return StepPricer()
          .price(*find_workload(kSmallModel), layout, find_platform(machine), constants)
          .compute;
    };
    return (compute(4, 8) - compute(4, 0)) / 4;
  };
  EXPECT_GT(each("dgx-h100", "fsdp"), 4000);  // 1.4e9 parameters, 8 bytes each, at 2.2 TB/s.
  EXPECT_LT(each("dgx-h100", "megatron"), 500);
  EXPECT_GT(each("dgx-a100", "megatron"), 4000);
}

TEST(Price, TransformerEngineHasFasterAttention) {
  const Platform platform = find_platform("dgx-h100");
  Layout layout;
  const double engine = Rates(platform, layout, Constants{}).attention(1e12);
  layout.framework = "torchtitan";
  EXPECT_NEAR(Rates(platform, layout, Constants{}).attention(1e12) / engine, 1.45 / .7, 1e-9);
}

TEST(Price, AttentionTakesWhatItsKernelDoes) {
  const auto us = [](const char* machine, const char* framework, const char* kernel) {
    Layout layout;
    layout.framework = framework, layout.attention_kernel = kernel;
    return Rates(find_platform(machine), layout, Constants{}).attention(1e12);
  };
  EXPECT_EQ(us("dgx-h100", "fsdp", "usual"), us("dgx-h100", "megatron", "flash_attention_2"));
  EXPECT_EQ(us("dgx-h100", "megatron", "usual"), us("dgx-h100", "fsdp", "flash_attention_3"));
  EXPECT_EQ(us("dgx-a100", "fsdp", "usual"), us("dgx-a100", "fsdp", "flash_attention_3"));
  // The second one has no kernels for Blackwell, whose peak it cannot reach.
  EXPECT_NEAR(us("dgx-b200", "fsdp", "flash_attention_2"),
              us("dgx-h100", "fsdp", "flash_attention_2"),
              .05 * us("dgx-h100", "fsdp", "flash_attention_2"));
  Layout layout;
  layout.fused_attention = false, layout.attention_kernel = "flash_attention_2";
  EXPECT_EQ(refusal_of_layout(layout),
            "attention_kernel: must be usual if attention is not fused, got flash_attention_2");
}

TEST(Price, OperatorsThatAreNotFusedMoveMore) {
  const auto us = [](const char* model, const char* framework, const char* pointwise, bool lora) {
    Layout layout;
    layout.framework = framework, layout.pointwise = pointwise, layout.lora = lora;
    return price_with(model, layout, "dgx-h100").compute;
  };
  const char* const gated = "qwen3-4b:layers=4,sequence=4096,vocabulary=1024";
  const double fused = us(gated, "fsdp", "fused", false), eager = us(gated, "fsdp", "eager", false);
  EXPECT_EQ(us(gated, "fsdp", "usual", false), eager);
  EXPECT_EQ(us(gated, "torchtitan", "usual", false), us(gated, "torchtitan", "fused", false));
  // Two norms of 2,560, norms and rotation of 40 heads of 128, and a gate of 9,728 in each block.
  const double bytes = (2 * 2560 + 5120) * (32 + 64) + 5120 * (20 + 28) + 9728 * (4 + 8);
  EXPECT_NEAR(eager - fused, 4 * 4096 * bytes / (3.35e6 * Constants{}.moved), .01 * eager);
  EXPECT_GT(us(gated, "fsdp", "eager", true) - us(gated, "fsdp", "fused", true), eager - fused);
  const char* const plain = "transformer:layers=4,hidden=2048,heads=16,vocabulary=1024";
  EXPECT_EQ(us(plain, "fsdp", "fused", false), us(plain, "fsdp", "eager", false));
}

TEST(Price, OperatorsThatAreNotFusedKeepMore) {
  const auto bytes = [](const char* pointwise) {
    Layout layout;
    layout.framework = "fsdp", layout.pointwise = pointwise;
    const auto model = find_workload("qwen3-4b:layers=4,sequence=4096,vocabulary=1024");
    return static_cast<double>(StepPricer().memory(*model, layout).allocated.count);
  };
  // Inputs of norms in 4 bytes, rotated heads and gates.
  const double block = (2 * 2560 + 5120) * 4 + 5120 * 2 + 9728 * 2;
  EXPECT_NEAR(bytes("eager") - bytes("fused"), 4096 * 4 * block, 1e6);
}

TEST(Price, PipelinesOfTorchtitanKeepGradientsWhole) {
  Layout layout;
  layout.pipeline = 4, layout.data = 8, layout.global_batch = 64, layout.recompute = "full";
  const auto gradients = [&](const char* framework, std::int64_t zero) {
    layout.framework = framework, layout.zero = zero;
    double bytes = 0;
    for (const auto& [name, size] : StepPricer().memory(*find_workload("llama3-8b"), layout).parts)
      bytes += name == "gradients" ? static_cast<double>(size.count) : 0;
    return bytes;
  };
  EXPECT_EQ(gradients("torchtitan", 2), gradients("torchtitan", 1));
  EXPECT_NEAR(gradients("fsdp", 2), gradients("fsdp", 1) / 8, 1);
  EXPECT_NEAR(gradients("torchtitan", 3), gradients("torchtitan", 1) / 8, 1);
}

TEST(Price, LogitsInPiecesTakeAPieceOfTheMemory) {
  const auto logits = [](bool fused) {
    Layout layout;
    layout.framework = "fsdp", layout.recompute = "full", layout.fused_loss = fused;
    double bytes = 0;
    for (const auto& [name, size] :
         StepPricer().memory(*find_workload("qwen3-4b:sequence=65536"), layout).parts)
      bytes += name == "logits" ? static_cast<double>(size.count) : 0;
    return bytes;
  };
  EXPECT_NEAR(logits(true) / logits(false), 2560 / 151936., .001);
}

TEST(Price, TokensTravelToARankOnce) {
  Layout layout;
  layout.data = 64, layout.expert = 64, layout.global_batch = 256, layout.recompute = "full";
  const auto exchange = [&](const char* dispatcher, bool overlaps, double nics) {
    layout.dispatcher = dispatcher, layout.overlaps_dispatch = overlaps;
    Platform platform = find_platform("dgx-h100");
    platform.across.bytes_per_second *= nics;
    return StepPricer()
        .price(*find_workload("qwen3-235b-a22b:layers=4"), layout, platform, Constants{})
        .tensor;
  };
  // Eight of 128 experts on eight nodes: 5.28 different nodes a token.
  EXPECT_NEAR(exchange("deepep", false, .01) / exchange("alltoall", false, .01), 5.28 / 8, .01);
  EXPECT_LT(exchange("deepep", true, 1), .5 * exchange("deepep", false, 1));
  // Passes hide no more than they last.
  EXPECT_GT(exchange("deepep", true, .01), .9 * exchange("deepep", false, .01));
}

TEST(Price, ChunksOfAStageScatterNoMoreGradients) {
  Layout layout;
  layout.pipeline = 4, layout.data = 8, layout.zero = 2, layout.global_batch = 128;
  const auto exposed = [&](std::int64_t chunks) {
    layout.virtual_stages = chunks;
    return price_with(kSmallModel, layout).gradients;
  };
  EXPECT_GT(exposed(1), 0);
  EXPECT_LT(exposed(3), 1.1 * exposed(1));
}

TEST(Price, FrameworksKeepDifferentBytes) {
  Layout layout;
  layout.pointwise = "fused";
  layout.data = 8, layout.global_batch = 8;
  const auto bytes = [&](const char* framework, std::int64_t zero) {
    layout.framework = framework, layout.zero = zero;
    const auto workload = find_workload("llama3-8b");
    return static_cast<double>(StepPricer().memory(*workload, layout).allocated.count) /
           workload->parameters();
  };
  EXPECT_NEAR(bytes("megatron", 0) - bytes("deepspeed", 0), 2, .1);
  EXPECT_NEAR(bytes("megatron", 0) - bytes("fsdp", 0), 2, .1);
  EXPECT_LT(bytes("torchtitan", 3), bytes("torchtitan", 0) - 12);
}

}  // namespace
}  // namespace foretrace
