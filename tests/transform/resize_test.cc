#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

/// The sizes of all blocks after a transform, and the figures; or the message of the Error.
std::string sizes_after(std::string_view graph_text, std::string_view step) {
  try {
    Graph graph = parse_graph(graph_text);
    const Effect effect = read_transform_text(step)->apply(graph, {});
    std::string text = effect.summary + ":";
    for (const Allocation& block : graph.allocations()) {
      text += " " + to_exact_text(block.bytes);
      if (block.requested > Bytes{}) text += "/" + to_exact_text(block.requested);
    }
    for (const Figure& figure : effect.figures) text += ", " + figure.name + " " + to_text(figure);
    for (const Bytes level : graph.initial_memory()) text += ", at first " + to_text(level);
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

constexpr auto kAttention = R"(
    @memory 3MB device=0
    cpu: A 1 {phase=forward module=Encoder/Attention}, B 1 {phase=forward module=Encoder/Mlp}, C 1 {phase=backward}, D 1
    @alloc 3MB use=parameter: .. D
    @alloc 4MB use=activation op="aten::softmax" stack="attention.py:12": A .. C
    @alloc 1MB use=activation op="aten::relu": B .. C
    @alloc 2MB use=workspace op="aten::mm": C .. C
)";

TEST(Resize, MultipliesWhatItIsAskedFor) {
  EXPECT_EQ(sizes_after(kAttention, "resize:where.use=activation,factor=2"),
            "2 allocations from 5 MB to 10 MB in all: 3MB 8MB 2MB 2MB, peak_before 8 MB, "
            "peak_after 13 MB, at first 3 MB");
}

TEST(Resize, FindsBlocksByOpSourceModulePhaseAndSize) {
  const std::pair<const char*, const char*> cases[] = {
      {"where.op=softmax", "3MB 16MB 1MB 2MB"},    {"where.stack=attention", "3MB 16MB 1MB 2MB"},
      {"where.module=/Mlp$/", "3MB 4MB 4MB 2MB"},  {"where.phase=backward", "3MB 4MB 1MB 8MB"},
      {"where.min_bytes=4MB", "3MB 16MB 1MB 2MB"}, {"where.max_bytes=1MB", "3MB 4MB 4MB 2MB"},
      {"where.use=workspace", "3MB 4MB 1MB 8MB"},  {"where.device=0", "12MB 16MB 4MB 8MB"},
  };
  for (const auto& [where, sizes] : cases) {
    const std::string found = sizes_after(kAttention, "resize:factor=4," + std::string(where));
    EXPECT_NE(found.find(std::string(": ") + sizes + ","), found.npos) << where << "\n" << found;
  }
}

TEST(Resize, WhatWasThereBeforeMovesTheLevelAtTheBeginning) {
  EXPECT_EQ(sizes_after(kAttention, "resize:where.use=parameter,to=1MB"),
            "1 allocation from 3 MB to 1 MB in all: 1MB/1MB 4MB 1MB 2MB, peak_before 8 MB, "
            "peak_after 6 MB, at first 1 MB");
}

TEST(Resize, RoundsAsTheAllocatorDid) {
  // 1000 bytes were requested and 1024 allocated: three times as much is 3000 of 3072, with no
  // rounding added.
  EXPECT_EQ(sizes_after("x: A 1\n@alloc 1024B requested=1000B: A ..", "resize:factor=3"),
            "1 allocation from 1.024 kB to 3.072 kB in all: 3KiB/3kB, peak_before 1.024 kB, "
            "peak_after 3.072 kB");
  EXPECT_EQ(sizes_after("x: A 1\n@alloc 7B: A ..", "resize:factor=0.5"),
            "1 allocation from 7 B to 4 B in all: 4B, peak_before 7 B, peak_after 4 B");
}

TEST(Resize, ToNothingTakesBlocksAway) {
  EXPECT_EQ(sizes_after("x: A 1\n@alloc 1024B: A ..", "resize:factor=0"),
            "1 allocation from 1.024 kB to 0 B in all: 0B, peak_before 1.024 kB, peak_after 0 B");
}

TEST(Resize, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"resize:where.op=gelu,factor=2", "no allocation matches \"where\" (op \"gelu\")"},
      {"resize:where.stack=/[/,factor=2",
       "resize: where: stack: must be a regular expression, got /[/: a [ without its ]"},
      {"resize:factor=2,to=1MB", "to: cannot be given together with factor"},
      {"resize:factor=-1", "resize: factor: must be at least 0, got -1"},
      {"resize:where.use=parameter,factor=1e8",
       "factor: would make a block of 3 MB larger than 17.59 TB, which no device has"},
  };
  for (const auto& [step, message] : cases) EXPECT_EQ(sizes_after(kAttention, step), message);
  EXPECT_EQ(sizes_after("x: A 1", "resize:factor=2"),
            "this trace does not record memory (torch.profiler: profile_memory=True; foretrace "
            "collect records it)");
  EXPECT_EQ(sizes_after("x: A 1\n@alloc 7B: A ..", "resize:where.use=activation"),
            "no allocation matches \"where\" (use activation); the use of memory is unknown in "
            "this trace");
}

}  // namespace
}  // namespace foretrace
