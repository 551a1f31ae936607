#include <gtest/gtest.h>

#include <algorithm>
#include <fmt/core.h>
#include <string>
#include <variant>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "support/simulated.h"
#include "transform/model/tensor_scheme.h"
#include "transform/parallel/communicator.h"

namespace foretrace {
namespace {

/// The size of each of the three tensors.
constexpr Bytes kWhole{1 << 24};

/// Returns the volume as the cost tables count it: (n-1)/n of a buffer, twice that for an
/// all-reduce, and n-1 times the tile for a broadcast, though a pipelined broadcast takes little
/// longer than one transfer of the tile.
double bandwidth_term(const std::vector<SchemeTransfer>& transfers) {
  double sum = 0;
  for (const SchemeTransfer& transfer : transfers) {
    const auto others = static_cast<double>(transfer.ranks - 1);
    const double share = transfer.operation == Operation::broadcast
                             ? others
                             : others / static_cast<double>(transfer.ranks) *
                                   (transfer.operation == Operation::all_reduce ? 2 : 1);
    sum += static_cast<double>(transfer.bytes.count * transfer.times) * share;
  }
  return sum;
}

double volume(const std::string& scheme, std::int64_t devices, std::int64_t depth = 1) {
  const TensorScheme tensors(scheme, devices, depth);
  // A single linear layer in 1-D sums its outputs only once in both passes together.
  const bool is_1d = scheme == "1d";
  const BlockTensors block{
      .inputs = kWhole, .weights = kWhole, .outputs = kWhole, .reduced = kWhole};
  auto transfers = tensors.forward(block);
  if (!is_1d) {
    for (const SchemeTransfer& one : tensors.backward(block)) transfers.push_back(one);
  }
  // The table counts the sums of weights over the depth separately.
  std::erase_if(transfers, [&](const SchemeTransfer& one) {
    return !is_1d && one.operation == Operation::all_reduce;
  });
  return bandwidth_term(transfers) / static_cast<double>(kWhole.count);
}

/// The bandwidth terms of Colossal-AI's cost table.
TEST(TensorScheme, VolumesAreThoseOfTheTable) {
  EXPECT_NEAR(volume("1d", 8), 1.75, 1e-6);
  EXPECT_NEAR(volume("1d", 64), 1.96875, 1e-6);
  EXPECT_NEAR(volume("2d", 4), 3, 1e-6);
  EXPECT_NEAR(volume("2d", 16), 4.5, 1e-6);
  EXPECT_NEAR(volume("2d", 64), 5.25, 1e-6);
  EXPECT_NEAR(volume("2.5d", 8, 2), 2.25, 1e-6);
  EXPECT_NEAR(volume("2.5d", 32, 2), 3.375, 1e-6);
  EXPECT_NEAR(volume("2.5d", 64, 4), 2.8125, 1e-6);
  EXPECT_NEAR(volume("3d", 8), .75, 1e-6);
  EXPECT_NEAR(volume("3d", 64), .28125, 1e-6);
}

TEST(TensorScheme, DevicesMustFitIt) {
  EXPECT_THROW(TensorScheme("2d", 8, 1), Error);
  EXPECT_THROW(TensorScheme("3d", 16, 1), Error);
  EXPECT_THROW(TensorScheme("2.5d", 8, 4), Error);
  EXPECT_EQ(TensorScheme("2.5d", 64, 4).parameter_parts(), 16);
  EXPECT_EQ(TensorScheme("3d", 64, 1).parameter_parts(), 64);
}

/// Two blocks, each a product and a norm; two GPUs at 1 GB/s sum 1 kB in 1 us.
constexpr auto kTwoBlocks = R"(
    stream: "a gemm" 8 {phase=forward step=0 layer=0}, n 2 {phase=forward step=0 layer=0}, "b gemm" 8 {phase=forward step=0 layer=1}, m 2 {phase=forward step=0 layer=1}, "c gemm" 16 {phase=backward step=0 layer=1}, "d gemm" 16 {phase=backward step=0 layer=0}
    @step one
)";

std::string tensor_parallel(const std::string& more) {
  return R"({"use": "tensor_parallel", "gpus": 2, "latency": "0us", )" + more + "}";
}

TEST(TensorParallel, ProductsTakeTheirPartAndEachBlockWaitsForItsSums) {
  // The shortest kernel, 2 us, is a floor: 2 + (8 - 2) / 2. Each block has two sums in each pass.
  EXPECT_EQ(
      simulated(kTwoBlocks, tensor_parallel(R"("activation_bytes": "1kB", "bandwidth": "1GB/s")")),
      R"(
stream |aaaaannccbbbbbmmcccccccccccccdddddddddcc|
)");
}

/// Blocks of a model whose modules each run a kernel, in this order.
double blocks_of(const std::vector<std::string>& modules) {
  std::string text = "stream: ";
  for (std::size_t i = 0; i < modules.size(); ++i)
    text += fmt::format("gemm 2 {{phase=forward step=0 layer={} module=\"{}\"}}, ", i, modules[i]);
  Graph graph = parse_graph(text + "gemm 2 {phase=backward step=0}\n@step one\n");
  const auto effect =
      read_transform_text("tensor_parallel:gpus=2,activation_bytes=1kB,bandwidth=1GB/s,latency=0us")
          ->apply(graph, {});
  const auto found = std::ranges::find(effect.figures, "blocks", &Figure::name);
  return std::get<double>(found->value);
}

TEST(TensorParallel, BlocksAreTheModulesOfOneClassThatHaveModulesThemselves) {
  EXPECT_EQ(
      blocks_of({"Model_0/Embeddings_0/Embedding_0", "Model_0/Embeddings_0/Embedding_1",
                 "Model_0/Layer_0/Norm_0", "Model_0/Layer_0/Linear_0", "Model_0/Layer_0/Linear_1",
                 "Model_0/Layer_0", "Model_0/Layer_1/Norm_1", "Model_0/Layer_1/Linear_2",
                 "Model_0/Layer_1", "Model_0/Layer_2/Linear_3", "Model_0/Norm_2", "Linear_4"}),
      3);
  // Two attentions in each decoder layer, as many as layers, are parts of a block.
  EXPECT_EQ(blocks_of({"Model_0/Decoder_0/Layer_0/Attention_0/Linear_0",
                       "Model_0/Decoder_0/Layer_0/Attention_1/Linear_1",
                       "Model_0/Decoder_0/Layer_1/Attention_2/Linear_2",
                       "Model_0/Decoder_0/Layer_1/Attention_3/Linear_3"}),
            2);
  // Experts, however many, are parts of a block too.
  EXPECT_EQ(
      blocks_of({"Model_0/Layer_0/Router_0/Expert_0/Linear_0",
                 "Model_0/Layer_0/Router_0/Expert_1/Linear_1",
                 "Model_0/Layer_0/Router_0/Expert_2/Linear_2", "Model_0/Layer_1/MLP_0/Linear_3"}),
      2);
}

TEST(TensorParallel, BlocksOfStagesAreCountedInAllStages) {
  EXPECT_EQ(blocks_of({"Model_0/Stack_0/Block_0/Linear_0", "Model_0/Stack_0/Block_1/Linear_1",
                       "Model_0/Stack_0/Block_2/Linear_2", "Model_0/Stack_0/Norm_0",
                       "Model_0/Stack_1/Block_3/Linear_3"}),
            4);
}

TEST(TensorParallel, LayersAreBlocksWhereNoModuleRepeats) {
  EXPECT_EQ(blocks_of({"Model_0/Linear_0", "Model_0/Linear_1", "Model_0/MLP_0/Linear_2"}), 3);
  EXPECT_EQ(blocks_of({"Model_0/Linear_0"}), 24);
}

TEST(TensorParallel, CollectivesAreBehindBlocksAlone) {
  constexpr auto kModel = R"(
    stream: "embed gemm" 2 {phase=forward step=0 layer=0 module="M_0/Embed_0"}, "a gemm" 2 {phase=forward step=0 layer=1 module="M_0/B_0/L_0"}, "b gemm" 2 {phase=forward step=0 layer=2 module="M_0/B_0/L_1"}, "d gemm" 2 {phase=forward step=0 layer=3 module="M_0/B_1/L_2"}, "x gemm" 2 {phase=backward step=0 layer=2 module="M_0/B_0/L_1"}
    @step one
)";
  EXPECT_EQ(
      simulated(kModel, tensor_parallel(R"("activation_bytes": "1kB", "bandwidth": "1GB/s")")),
      R"(
stream |eeaabbccddccxxcc|
)");
}

TEST(TensorParallel, WhatLiesBetweenProductsIsDividedAlongTheSequenceOnly) {
  constexpr auto kLongNorm = R"(
    stream: "a gemm" 8 {phase=forward step=0 layer=0}, layer_norm 6 {phase=forward step=0 layer=0}, "b gemm" 8 {phase=backward step=0 layer=0}, k 2 {phase=backward step=0 layer=0}
    @step one
)";
  const auto norm_after = [&](const std::string& more) {
    Graph graph = parse_graph(kLongNorm);
    const TaskId norm = graph.next(graph.first(LaneId{0}));
    read_transform_text("tensor_parallel:gpus=2,activation_bytes=1kB,bandwidth=1GB/s,latency=0us" +
                        more)
        ->apply(graph, {});
    return graph.task(norm).duration;
  };
  EXPECT_EQ(norm_after(""), 6us);
  EXPECT_EQ(norm_after(",sequence_parallel=true"), 4us);  // 2 + (6 - 2) / 2.
}

TEST(TensorParallel, AFreeNetworkLeavesTheDividedWork) {
  Graph graph = parse_graph(kTwoBlocks);
  read_transform_text(
      "tensor_parallel:gpus=2,activation_bytes=1kB,bandwidth=1000000GB/s,latency=0us")
      ->apply(graph, {});
  EXPECT_LE(simulate(graph).length, 33us);
  EXPECT_GE(simulate(graph).length, 32us);
}

TEST(TensorParallel, WhatCannotBeIsRefused) {
  for (const char* const step :
       {"tensor_parallel:gpus=2,bandwidth=1GB/s,latency=0us",  // No sizes.
        "tensor_parallel:gpus=3,heads=8,activation_bytes=1kB,bandwidth=1GB/s,latency=0us",
        "tensor_parallel:gpus=8,scheme=2d,activation_bytes=1kB,weight_bytes=1kB,bandwidth=1GB/s,"
        "latency=0us",
        "tensor_parallel:gpus=8,scheme=3d,activation_bytes=1kB,bandwidth=1GB/s,latency=0us"}) {
    Graph graph = parse_graph(kTwoBlocks);
    EXPECT_THROW(read_transform_text(step)->apply(graph, {}), Error) << step;
  }
}

/// 64 GPUs on a uniform network like InfiniBand between V100 hosts; h from 4,096 to 16,384 in fp16,
/// 8 samples of 512 positions. Compares the times of collectives and of products at 60 TFLOP/s
/// together.
TEST(TensorParallel, ThreeDimensionsBeatTwoAndOneAsPublished) {
  double least = 1e9, most = 0;
  for (const std::int64_t hidden : {4096, 8192, 16384}) {
    const std::int64_t activation = 8 * 512 * hidden * 2, weights = 12 * hidden * hidden * 2;
    const auto step = [&](const std::string& scheme) {
      Graph graph = parse_graph(kTwoBlocks);
      // 2 x 12 h^2 operations for each of 4,096 positions, and twice as many in the backward pass.
      const double us = 2. * 12 * static_cast<double>(hidden * hidden) * 4096 / 60e6;
      for (TaskId id = graph.first(LaneId{0}); id != kNoTask; id = graph.next(id)) {
        Task& task = graph.task(id);
        if (graph.name(id).find("gemm") == std::string_view::npos) continue;
        task.duration = from_microseconds(task.phase == Phase::backward ? 2 * us : us);
      }
      read_transform_text("tensor_parallel:gpus=64,latency=10us,bandwidth=6GB/s,scheme=" + scheme +
                          ",activation_bytes=" + std::to_string(activation) +
                          "B,weight_bytes=" + std::to_string(weights) + "B")
          ->apply(graph, {});
      return static_cast<double>(simulate(graph).length.count());
    };
    const double three = step("3d");
    std::printf("h %d: 1-D %.2f, 2-D %.2f, 2.5-D %.2f times as long as 3-D\n",
                static_cast<int>(hidden), step("1d") / three, step("2d") / three,
                step("2.5d,depth=4") / three);
    EXPECT_GT(step("2d") / three, 1);
    least = std::min(least, step("1d") / three), most = std::max(most, step("1d") / three);
  }
  EXPECT_GT(least, 1);  // Published on 64 V100: 2.32.
  EXPECT_LT(most, 6);
}

/// Workers of eight GPUs: eight groups of two share the network links of a host.
TEST(Communicator, GroupsOnTheSameHostsShareTheirNics) {
  const auto gbps = [](const char* machine, const char* algorithm, std::int64_t stride) {
    NetworkSettings settings;
    settings.machine = machine, settings.algorithm = algorithm;
    Communicator network(settings, 2, stride);
    constexpr Bytes kLarge{1 << 30};
    return static_cast<double>(kLarge.count) /
           static_cast<double>(network.time(Operation::all_reduce, kLarge).count());
  };
  for (const char* const how : {"auto", "ring"}) {
    SCOPED_TRACE(how);
    // One NIC of 25 Gb/s for all eight GPUs, and one of 200 Gb/s for each.
    EXPECT_GT(gbps("aws-p3", how, 8), .25);
    EXPECT_LT(gbps("aws-p3", how, 8), .4);
    EXPECT_GT(gbps("dgx-a100", how, 8), 15);
    EXPECT_LT(gbps("dgx-a100", how, 8), 25);
  }
}

TEST(Communicator, DataParallelWorkersOfSeveralGpusLieApart) {
  const auto length = [](std::int64_t gpus) {
    Graph graph = parse_graph(kTwoBlocks);
    read_transform_text("data_parallel:gpus=2,machine=dgx-a100,gradient_bytes=1GB,copies=false")
        ->apply(graph, {.gpus_per_worker = gpus});
    return simulate(graph).length;
  };
  EXPECT_GT(length(8), 3 * length(1));  // Over the network, not NVLink.
}

/// Each of two GPUs has half of 8 kB of keys and values, and sends it once: 4 us at 1 GB/s.
constexpr auto kParallelAttention = R"(
    stream: x 4 {phase=forward step=0 layer=0}, "flash fwd" 12 {phase=forward step=0 layer=0}, y 4 {phase=forward step=0 layer=1}, "flash bwd" 40 {phase=backward step=0 layer=0}
    @step one
)";

TEST(ContextParallel, TheRingWaitsForWhatAttentionDoesNotHide) {
  // Floor 4 us. Forward attention: 4 + 8 / 2 = 8 us in two rounds, over two blocks a mean of 4, so
  // that a round of 2 hides half of the 4. Backward: both tensors take 8, and 22 / 2 / 2 hide 5.5.
  Graph graph = parse_graph(kParallelAttention);
  const Effect effect =
      read_transform_text("context_parallel:gpus=2,kv_bytes=8kB,bandwidth=1GB/s,latency=0us")
          ->apply(graph, {});
  Nanoseconds waits{0};
  for (TaskId id = graph.first(LaneId{0}); id != kNoTask; id = graph.next(id))
    if (graph.task(id).kind == TaskKind::collective) waits += graph.task(id).duration;
  EXPECT_EQ(waits, 2 * 2us + 2500ns);
  EXPECT_EQ(effect.figures.size(), 2U);
}

TEST(ContextParallel, SizesAreNeededAndPositionsDivided) {
  Graph graph = parse_graph(kParallelAttention);
  EXPECT_THROW(
      read_transform_text("context_parallel:gpus=2,bandwidth=1GB/s,latency=0us")->apply(graph, {}),
      Error);
  EXPECT_THROW(read_transform_text("context_parallel:gpus=2,kv_bytes=8kB,positions=1023,"
                                   "bandwidth=1GB/s,latency=0us")
                   ->apply(graph, {}),
               Error);
}

constexpr auto kExperts = R"(
    stream: x 2 {phase=forward step=0}, moe 10 {phase=forward step=0}, moe2 10 {phase=forward step=0}, y 2 {phase=forward step=0}
    @step one
)";

TEST(ExpertParallel, TokensGoThereAndBack) {
  // Half of 4 kB leaves a GPU: 2 us at 1 GB/s.
  EXPECT_EQ(simulated(kExperts, R"({"use": "expert_parallel", "gpus": 2, "experts": 4, "top_k": 1,
      "token_bytes": "4kB", "imbalance": 0, "bandwidth": "1GB/s", "latency": "0us", "where": {"name": "moe"}})"),
            R"(
stream |xxaammmmmmmmmmmmmmmmmmmmaayy|
)");
}

TEST(ExpertParallel, AllWaitForTheBusiest) {
  Graph graph = parse_graph(kExperts);
  read_transform_text(
      "expert_parallel:gpus=2,experts=4,token_bytes=4kB,imbalance=0.5,bandwidth=1GB/s,"
      "latency=0us,where.name=moe")
      ->apply(graph, {});
  // The greater of two normal numbers is 0.5642 on average; the formula says 0.589.
  const TaskId moe = graph.next(graph.next(graph.first(LaneId{0})));
  EXPECT_NEAR(static_cast<double>(graph.task(moe).duration.count()), 10000 * 1.2821, 150);
  EXPECT_THROW(read_transform_text("expert_parallel:gpus=3,experts=4,token_bytes=4kB,"
                                   "bandwidth=1GB/s,latency=0us")
                   ->apply(graph, {}),
               Error);
}

TEST(ModelParallel, DataParallelismBehindItSendsGradients) {
  const std::string data = R"({"use": "data_parallel", "gpus": 2, "bandwidth": "1GB/s",
      "latency": "0us", "gradient_bytes": "4kB", "bucket": "1MB", "first_bucket": "1MB",
      "copies": false, "lateness": "0us", "lateness_share": 0, "kernel_contention": 0,
      "collective_contention": 0})";
  const std::string tensor = tensor_parallel(R"("activation_bytes": "1kB", "bandwidth": "1GB/s")");
  EXPECT_EQ(simulated(kTwoBlocks, tensor, data), R"(
stream        |aaaaannccbbbbbmmcccccccccccccdddddddddcc..|
data parallel |......................................aaaa|
)");
  EXPECT_NE(simulated(kTwoBlocks, data, data).find("has communicated already"), std::string::npos);
}

}  // namespace
}  // namespace foretrace
