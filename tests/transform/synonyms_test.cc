#include "transform/synonyms.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "foretrace/error.h"
#include "foretrace/transform.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// The steps, joined by " + ", or the message of the error.
std::string steps_of(std::string_view text) {
  try {
    std::string all;
    for (const std::string& step : read_steps(text)) all += (all.empty() ? "" : " + ") + step;
    return all;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Synonyms, MeanATransformWithSettings) {
  const std::pair<const char*, const char*> cases[] = {
      {"amp", "amp"},
      {"bf16", "amp:precision=bf16"},
      {"fp16", "amp"},
      {"Mixed-Precision", "amp"},
      {"num_workers=4", "loader:workers=4"},
      {"num_workers: 4", "loader:workers=4"},
      {"num_workers 4", "loader:workers=4"},
      {"zero stage 2", "zero:stage=2"},
      {"bucket_cap_mb=50MB", "bucket_size:bucket=50MB"},
      {"bucket_size=50MB", "bucket_size:bucket=50MB"},
      {"tp=2", "tensor_parallel:gpus=2"},
      {"tensor parallel", "tensor_parallel"},
      {"PowerSGD", "compress:method=powersgd"},
      {"gradient compression", "compress"},
      {"loader:num_workers=4,prefetch_factor=3", "loader:workers=4,prefetch_factor=3"},
      {"checkpointing", "recompute"},
      {"gradient checkpointing", "recompute"},
      {"compile", "torch_compile"},
      {"torch.compile", "torch_compile"},
      {"torch.compile=reduce-overhead", "torch_compile:mode=reduce-overhead"},
      {"loader=4", "loader:workers=4"},
      {"compile=reduce-overhead", "torch_compile:mode=reduce-overhead"},
      {"cudagraphs", "cuda_graphs"},
      {"batch_size:from=32,to=64", "batch_size:from=32,to=64"},
      {"grad_accum=4", "gradient_accumulation:micro_batches=4"},
      {"gradient_accumulation:steps=4", "gradient_accumulation:micro_batches=4"},
      {"gpu=a100-sxm4-80gb", "faster_device:to=a100-sxm4-80gb"},
      {"pin_memory=True", "pin_memory"},
      {"fused adam", "fused_optimizer"},
      {"loader.workers=4", "loader:workers=4"},
      {"amp,loader.num_workers=4", "amp + loader:workers=4"},
      {"scale:name=/softmax/,kind=kernel,factor=0.5",
       "scale:where.name=/softmax/,where.kind=kernel,factor=0.5"},
      {"scale:where.name=a,where.kind=kernel", "scale:where.name=a,where.kind=kernel"},
      {"zero-3", "zero:stage=3"},
      {"zero3:workers=8", "zero:stage=3,workers=8"},
  };
  for (const auto& [text, steps] : cases) EXPECT_EQ(steps_of(text), steps) << text;
}

TEST(Synonyms, ACommaBeginsAStepWhereItCannotBeASetting) {
  const std::pair<const char*, const char*> cases[] = {
      {"amp,loader:workers=4", "amp + loader:workers=4"},
      {"amp, num_workers=4, compile", "amp + loader:workers=4 + torch_compile"},
      {"loader:workers=4,pin_memory=true,prefetch_factor=2",
       "loader:workers=4,pin_memory=true,prefetch_factor=2"},
      {"loader:workers=4,pin_memory", "loader:workers=4 + pin_memory"},
      {"scale:where.name=/a,amp/,factor=0.5,amp", "scale:where.name=/a,amp/,factor=0.5 + amp"},
      {"scale:where.name=[a,b],factor=2", "scale:where.name=[a,b],factor=2"},
      {"prefetch:buffers=2,amp:shortest=2us", "prefetch:buffers=2 + amp:shortest=2us"},
      {"amp,", "must be a setting or a step after the last comma"},
  };
  for (const auto& [text, steps] : cases) EXPECT_EQ(steps_of(text), steps) << text;
}

TEST(Synonyms, WhatIsNotThereLeadsToWhatIs) {
  const std::pair<const char*, const char*> cases[] = {
      {"batch=64", "there is no transform \"batch\": a trace does not contain its batch"},
      {"batch_size=64", "batch_size: a trace does not contain its batch size; give both"},
      {"seq_len=512", "sequence_length:from=512,to=1024"},
      {"ddp", "data_parallel:gpus=8,machine=dgx-a100"},
      {"fsdp", "zero:stage=3,workers=8"},
      {"megatron", "pipeline:stages=4,micro_batches=16"},
      {"batch size 64", "give both sizes, as in `--with \"batch_size:from=32,to=64\"`"},
      {"a100 -> h100", "faster_device:to=h100-nvl or faster_device:to=h100-pcie-80gb"},
      {"dali", "`foretrace input TRACE`"},
      {"expandable_segments", "`foretrace memory TRACE --conf expandable_segments:True`"},
      {"flash attention", "kernel_from:trace=OTHER"},
      {"steps=4", "gradient_accumulation:micro_batches=4"},
      {"h100", "faster_device:to=h100-nvl or faster_device:to=h100-pcie-80gb"},
      {"amp + prefetch", "did you mean \"amp,prefetch\"?"},
      {"a100", "...; `foretrace list devices` shows all"},
      {"checkpointing=2", "takes no value, got \"2\""},
      {"prefech", "did you mean \"prefetch\"?"},
      {"pinned host buffers for staging", "(related: offload, pin_memory"},
      {"ttft", "there is no transform \"ttft\": ask `foretrace serve MODEL --machine NAME"},
      {"power", "--power FILE"},
      {"unheard of", "; `foretrace list transforms` shows all"},
  };
  for (const auto& [text, part] : cases)
    EXPECT_NE(steps_of(text).find(part), std::string::npos) << text << " -> " << steps_of(text);
}

TEST(Synonyms, SettingsHaveThemToo) {
  EXPECT_EQ(setting_path_called("num_workers"), "loader.workers");
  EXPECT_EQ(setting_path_called("loader.num_workers"), "loader.workers");
  EXPECT_EQ(setting_path_called("scale.name"), "scale.where.name");
  for (const char* own : {"loader.workers", "memory.limit", "transforms[1].factor", "none"})
    EXPECT_EQ(setting_path_called(own), own);
}

TEST(Synonyms, AScenarioFileIsToldTheName) {
  EXPECT_EQ(no_such_transform("bf16"),
            "there is no transform \"bf16\" (did you mean \"amp:precision=bf16\"?); `foretrace "
            "list transforms` shows all");
}

// Every entry of the table can be used.
TEST(Synonyms, EveryLineOfTheTableIsReadable) {
  std::set<std::string> seen;
  for (const Synonym& synonym : synonyms()) {
    std::string step(synonym.transform);
    if (!synonym.settings.empty()) step += ":" + std::string(synonym.settings);
    EXPECT_NO_THROW(read_transform_text(step)) << step;
    for (const std::string_view word : synonym.words)
      EXPECT_TRUE(seen.insert(std::string(word)).second) << word << " stands there twice";
  }
  const std::string table = contents_of(FORETRACE_SOURCE_DIR "/src/transform/synonyms.def");
  const std::regex quoted(R"(--with \\"([^"\\]+)\\")");
  int found = 0;
  for (auto match = std::sregex_iterator(table.begin(), table.end(), quoted);
       match != std::sregex_iterator(); ++match, ++found) {
    const std::string step = (*match)[1];
    EXPECT_NO_THROW(read_transform_text(step)) << step;
  }
  EXPECT_GT(found, 10);
}

}  // namespace
}  // namespace foretrace
