#include "workload/workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "foretrace/error.h"

namespace foretrace {
namespace {

std::string refusal_of_model(const std::string& text, const LayerSlice& slice = {}) {
  try {
    find_workload(text)->layers(slice);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Workload, HasThePublishedParameters) {
  const std::pair<const char*, double> published[] = {
      {"gpt2-1.4b", 1'389'327'360},  // Chimera, table 4.
      {"bert-48", 669'790'012},
      {"resnet-50", 25'557'032},  // torchvision.
      {"vgg-16", 138'357'544},
      {"llama3-8b", 8'030'261'248},
      {"llama3-70b", 70'553'706'496},
      {"mpt-125m:sequence=512,positions=512", 124'131'840},  // llm-foundry's tables.
      {"mpt-13b", 12'853'954'560},
      {"mpt-70b", 64'862'437'376},
  };
  for (const auto& [model, parameters] : published) {
    EXPECT_EQ(find_workload(model)->parameters(), parameters) << model;
  }
}

TEST(Workload, CountsExpertsOnce) {
  EXPECT_NEAR(find_workload("deepseek-v3")->parameters(), 671e9, .5e9);
  EXPECT_NEAR(find_workload("qwen3-30b-a3b")->parameters(), 30.5e9, .1e9);
}

/// 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)), with all blocks computed twice (Megatron-LM).
TEST(Workload, CountsOperationsAsMegatronDoes) {
  const double b = 4, s = 1024, h = 2048, l = 24, v = 51200;
  const auto model = find_workload("transformer:layers=24,hidden=2048,heads=16,vocabulary=51200");
  double blocks = 0, head = 0;
  for (const LayerRow& row : model->layers({.micro_batch = 4})) {
    (row.name == "block" ? blocks : head) += row.operations * static_cast<double>(row.count);
  }
  const double formula = 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_NEAR((4 * blocks + 3 * head) / formula, 1, 1e-12);
}

TEST(Workload, CountsOperationsOfABlockAsZeroBubbleDoes) {
  const double b = 2, s = 1024, h = 4096;
  const auto model = find_workload("transformer:layers=30,hidden=4096,heads=32");
  EXPECT_EQ(model->layers({.micro_batch = 2})[1].operations, s * b * h * (24 * h + 4 * s));
}

/// s b h (34 + 5 a s / h), and s b h (10 + 24 / t + 5 a s / (h t)): arXiv 2205.05198.
TEST(Workload, KeepsActivationsAsPublished) {
  const double s = 2048, b = 1, h = 12288, a = 96;
  const auto model = find_workload("gpt3-175b");
  const auto kept = [&](LayerSlice slice) {
    slice.fused_attention = false;
    return static_cast<double>(model->layers(slice)[1].kept.count);
  };
  EXPECT_EQ(kept({}), s * b * h * (34 + 5 * a * s / h));
  EXPECT_EQ(kept({.tensor = 8}), s * b * h * (10 + 24. / 8 + 5 * a * s / (h * 8)));
  EXPECT_EQ(kept({.tensor = 8, .sequence_parallel = true}), s * b * h / 8 * (34 + 5 * a * s / h));
  const LayerRow block = model->layers({.fused_attention = false})[1];
  EXPECT_EQ(block.kept_selective.count, static_cast<std::int64_t>(34 * s * b * h));
  EXPECT_EQ(block.kept_full.count, static_cast<std::int64_t>(2 * s * b * h));
}

TEST(Workload, SplitsWhatTensorParallelismSplits) {
  const auto model = find_workload("gpt3-175b");
  const LayerRow whole = model->layers({})[1], part = model->layers({.tensor = 8})[1];
  EXPECT_EQ(whole.operations, part.operations);
  EXPECT_EQ(whole.exchanges, 0);
  EXPECT_EQ(part.exchanges, 2);
  EXPECT_EQ(part.gemms[0].columns * 8, whole.gemms[0].columns);
  EXPECT_EQ(part.gemms[1].inner * 8, whole.gemms[1].inner);
}

TEST(Workload, SaysWhatIsWrong) {
  EXPECT_EQ(refusal_of_model("llama3-8b", {.tensor = 3}),
            "heads must divide by tensor parallel ranks: 32 by 3");
  EXPECT_EQ(refusal_of_model("llama3-8b", {.expert = 2}),
            "a model without experts must have 1 expert parallel rank, got 2");
  EXPECT_EQ(refusal_of_model("transformer:hidden=1000,heads=16"),
            "transformer: heads: must divide hidden, 1000, got 16");
  EXPECT_EQ(
      refusal_of_model("convolutional:depth=51"),
      "convolutional: depth: resnet must have one of the depths 18, 34, 50, 101, 152, got 51");
  EXPECT_NE(refusal_of_model("gpt3").find("there is no model"), 0U);
  EXPECT_EQ(refusal_of_model("llama3-8c").substr(0, 60),
            "there is no model 'llama3-8c' (did you mean \"llama3-8b\"?); m");
}

TEST(Workload, KnowsModelsByPublishedNames) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(presets_recorded_as("LLAMA3.1_405B"), Names{"llama3-405b"});
  EXPECT_EQ(presets_recorded_as("GPT 175B"), Names{"gpt3-175b"});
  EXPECT_EQ(presets_recorded_as("unheard of"), Names{});
}

}  // namespace
}  // namespace foretrace
