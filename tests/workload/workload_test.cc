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
      // Of the published weights, as their index files count them.
      {"llama2-7b", 6'738'415'616},
      {"llama3-405b", 405'853'388'800},
      {"llama3.2-1b", 1'235'814'400},
      {"llama3.2-3b", 3'212'749'824},
      {"mistral-7b", 7'241'732'096},
      {"mixtral-8x7b", 46'702'792'704},
      {"mixtral-8x22b", 140'620'634'112},
      {"qwen2.5-7b", 7'615'616'512},
      {"qwen3-0.6b", 596'049'920},
      {"qwen3-4b", 4'022'468'096},
      {"qwen3-8b", 8'190'735'360},
      {"qwen3-32b", 32'762'123'264},
      {"qwen3-30b-a3b", 30'532'122'624},
      {"qwen3-235b-a22b", 235'093'634'560},
      {"deepseek-v2-lite", 15'706'484'224},
      {"deepseek-v2", 235'741'434'880},
      {"deepseek-v3", 671'026'419'200},
      // Without the copies of embedding and head that are published beside it.
      {"deepseek-v3-mtp", 671'026'419'200 + 11'610'068'224},
      {"kimi-k2", 1'026'408'232'448},
      {"gpt-oss-120b", 116'829'156'672},
      {"gpt-oss-20b", 20'914'757'184},
      {"glm-4.5-air", 106'852'245'504 + 45 * 128},  // Its trainers count no score biases.
      {"glm-4.5", 352'797'829'024},
      {"glm-4.5:mtp_layers=1", 352'797'829'024 + 3'988'069'792},
      {"qwen3-next-80b-a3b", 79'674'391'296},
      {"qwen3-next-80b-a3b:mtp_layers=1", 79'674'391'296 + 1'650'471'424},
      {"mpt-125m:sequence=512,positions=512", 124'131'840},  // llm-foundry's tables.
      {"mpt-13b", 12'853'954'560},
      {"mpt-70b", 64'862'437'376},
  };
  for (const auto& [model, parameters] : published) {
    EXPECT_EQ(find_workload(model)->parameters(), parameters) << model;
  }
}

/// Of four blocks three are linear: their attention grows with the tokens, the fourth's with their
/// square. A layer for further tokens is the head's, not a stage's.
TEST(Workload, HasLinearAttentionAndFurtherTokens) {
  const auto attention = [](const std::string& sequence, std::size_t row) {
    return find_workload("qwen3-next-80b-a3b:sequence=" + sequence)
        ->layers({})[row]
        .attention_operations;
  };
  EXPECT_EQ(find_workload("qwen3-next-80b-a3b")->layers({}).size(), 2 + 24U);
  EXPECT_EQ(find_workload("qwen3-next-80b-a3b")->layers({})[1].count, 3);
  EXPECT_EQ(attention("8192", 1), 2 * attention("4096", 1));
  EXPECT_EQ(attention("8192", 2), 4 * attention("4096", 2));
  const auto plain = find_workload("deepseek-v3"), with = find_workload("deepseek-v3-mtp");
  EXPECT_EQ(plain->layers({})[2].operations, with->layers({})[2].operations);
  const LayerRow &block = plain->layers({})[2], &head = plain->layers({})[3];
  const double tokens = 4096, h = 7168;
  EXPECT_EQ(with->layers({})[3].operations,
            2 * head.operations + block.operations + 4 * tokens * h * h);
  EXPECT_EQ(with->layers({})[3].expert_parameters, block.expert_parameters);
  EXPECT_EQ(refusal_of_model("transformer:full_every=4"),
            "transformer: full_every: needs linear_heads, linear_value_heads and linear_head_size");
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
