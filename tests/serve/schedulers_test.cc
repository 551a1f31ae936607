#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "serve/engine.h"
#include "serve/loop.h"
#include "serve/sglang_ratio.h"

namespace foretrace::serve {
namespace {

EngineSettings settings_of(const std::string& scheduler, std::int64_t tokens = 2048) {
  EngineSettings settings;
  settings.scheduler = scheduler, settings.max_tokens = tokens;
  settings.blocks = 100'000, settings.overlapped = false;
  return with_defaults(settings);
}

void submit(Engine& engine, std::int64_t id, std::int64_t input, std::int64_t output = 100) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id, sequence->input = input, sequence->output = output;
  engine.submit(std::move(sequence));
}

/// The tokens of each part of the next `steps` steps: "1500 548 | 1 452 300".
std::string steps_of(Engine& engine, int steps) {
  std::string text;
  std::vector<Part> parts;
  for (int step = 0; step < steps; ++step) {
    engine.plan(parts);
    text += step > 0 ? " |" : "";
    for (const Part& part : parts) text += (text.empty() ? "" : " ") + std::to_string(part.tokens);
    engine.advance(parts, 1);
  }
  return text;
}

TEST(VllmScheduler, RunningRequestsTakeTheBudgetFirst) {
  Engine engine(settings_of("vllm"));
  submit(engine, 0, 1500), submit(engine, 1, 1000), submit(engine, 2, 300);
  EXPECT_EQ(steps_of(engine, 3), "1500 548 | 1 452 300 | 1 1 1");
}

TEST(VllmScheduler, ThresholdCutsLongPrompts) {
  EngineSettings settings = settings_of("vllm");
  settings.prefill_threshold = 256;
  Engine engine(settings);
  submit(engine, 0, 1500), submit(engine, 1, 1000), submit(engine, 2, 300);
  EXPECT_EQ(steps_of(engine, 7),
            "256 256 256 | 256 256 44 | 256 256 1 | 256 232 1 | 256 1 1 | 220 1 1 | 1 1 1");
}

TEST(VllmScheduler, WithoutChunksALongPromptStopsThoseBehindIt) {
  EngineSettings settings = settings_of("vllm");
  settings.is_chunked = false;
  Engine engine(settings);
  submit(engine, 0, 1500), submit(engine, 1, 1000), submit(engine, 2, 300);
  EXPECT_EQ(steps_of(engine, 2), "1500 | 1 1000 300");
}

TEST(VllmScheduler, PreemptsTheLastRequestWhichWaitsForItsBlocks) {
  EngineSettings settings = settings_of("vllm");
  settings.blocks = 10;
  Engine engine(settings);
  submit(engine, 1, 64), submit(engine, 2, 64);
  steps_of(engine, 17);  // Both have 80 tokens in five blocks.
  EXPECT_EQ(engine.blocks().unused(), 0);
  EXPECT_EQ(steps_of(engine, 1), "1");
  ASSERT_EQ(engine.waiting_count(), 1U);
  EXPECT_EQ(engine.preemptions(), 1);
  const Sequence& preempted = *engine.waiting.front();
  EXPECT_EQ(preempted.total(), 81);
  EXPECT_EQ(engine.hit(preempted), 64);
  EXPECT_EQ(engine.blocks().unused(), 4);
  EXPECT_FALSE(engine.fits(preempted, preempted.total()));
  EXPECT_EQ(steps_of(engine, 2), "1 | 1");
}

TEST(PrefixCache, HoldsFullBlocksAndLeavesOneToken) {
  EXPECT_EQ(greatest_hit(100, 16), 96);
  EXPECT_EQ(greatest_hit(96, 16), 80);
  EXPECT_EQ(greatest_hit(16, 16), 0);
}

TEST(Graphs, PadToTheNextCapturedSize) {
  const auto vllm = graph_sizes(settings_of("vllm"));
  const std::pair<int, int> pads[] = {{3, 4},     {5, 8},     {8, 8},     {9, 16},    {33, 40},
                                      {512, 512}, {257, 272}, {300, 304}, {500, 512}, {513, 0}};
  for (const auto& [tokens, size] : pads) EXPECT_EQ(padded(vllm, tokens), size) << tokens;
  const auto sglang = graph_sizes(settings_of("sglang"));
  const std::pair<int, int> other[] = {{3, 4}, {5, 8}, {9, 12}, {13, 16}, {17, 24}, {117, 120}};
  for (const auto& [tokens, size] : other) EXPECT_EQ(padded(sglang, tokens), size) << tokens;
  const auto trtllm = graph_sizes(settings_of("trtllm"));
  EXPECT_EQ(padded(trtllm, 33), 40);
  EXPECT_EQ(padded(trtllm, 100), 104);
  EXPECT_EQ(padded(trtllm, 129), 0);
}

TEST(Graphs, SizesAreAsManyAsTheEnginesCapture) {
  const auto count = [](const std::string& scheduler, std::int64_t most, std::int64_t sequences) {
    EngineSettings settings = settings_of(scheduler);
    settings.max_graph = most, settings.max_sequences = sequences;
    return graph_sizes(settings).size();
  };
  EXPECT_EQ(count("vllm", 512, 1024), 51U);
  EXPECT_EQ(count("vllm", 128, 1024), 19U);
  EXPECT_EQ(count("vllm", 512, 64), 19U);
  EXPECT_EQ(count("sglang", 256, 2048), 36U);
  EXPECT_EQ(count("sglang", 512, 2048), 52U);
  EXPECT_EQ(count("trtllm", 128, 2048), 19U);
}

TEST(SglangScheduler, PromptsComeFirst) {
  Engine engine(settings_of("sglang", 8192));
  submit(engine, 0, 5000), submit(engine, 1, 5000), submit(engine, 2, 100);
  EXPECT_EQ(steps_of(engine, 3), "5000 3192 | 1808 100 | 1 1 1");
}

TEST(SglangScheduler, AdmitsByTheShareOfOutputsThatItExpects) {
  EngineSettings settings = settings_of("sglang", 100'000);
  Engine engine(settings);
  for (int i = 0; i < 50; ++i) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = i, sequence->input = 500, sequence->output = 1000;
    sequence->produced = 100, sequence->computed = 599;
    engine.grow(*sequence, 600);
    engine.running.push_back(std::move(sequence));
  }
  EXPECT_EQ(engine.blocks().unused(), 70'000);
  for (int i = 0; i < 20; ++i) submit(engine, 100 + i, 2000, 2048);
  EXPECT_EQ(steps_of(engine, 1), "2000 2000 2000 2000 2000 2000 2000 2000 2000");
}

TEST(SglangScheduler, ExpectsLessWithEachStepAndMoreAfterRetraction) {
  EXPECT_NEAR(decayed_ratio(.7, 100), .59967, 1e-5);
  EXPECT_DOUBLE_EQ(decayed_ratio(.7, 600), .098);
  EXPECT_DOUBLE_EQ(decayed_ratio(.7, 6000), .098);
  EXPECT_NEAR(retracted_ratio(400, 4, 4000), .11997, 1e-5);
}

TEST(TrtllmScheduler, ReservesBlocksToTheEndOrForTheNextStep) {
  for (const auto& [reserve, admitted] : {std::pair("all", 5U), std::pair("next", 10U)}) {
    EngineSettings settings = settings_of("trtllm", 8192);
    settings.blocks = 100, settings.reserve = reserve;
    Engine engine(settings);
    for (int i = 0; i < 20; ++i) submit(engine, i, 320, 320);
    std::vector<Part> parts;
    engine.plan(parts);
    EXPECT_EQ(parts.size(), admitted);
    engine.advance(parts, 1);
    engine.plan(parts);
    EXPECT_EQ(engine.preemptions() > 0, reserve == std::string("next"));
  }
}

TEST(TrtllmScheduler, WithoutChunksAPromptThatIsTooLongForTheStepWaits) {
  Engine engine(settings_of("trtllm", 2048));
  submit(engine, 0, 1500), submit(engine, 1, 1000), submit(engine, 2, 300);
  EXPECT_EQ(steps_of(engine, 2), "1500 | 1 1000 300");
}

}  // namespace
}  // namespace foretrace::serve
