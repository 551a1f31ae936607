#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "foretrace/answer/figure.h"
#include "foretrace/error.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

/// Four layers, forward (A to D) and backward (d to a). Each layer keeps 4 MB for its backward
/// pass.
constexpr auto kFourLayers = R"(
    stream: A 1 {phase=forward layer=0}, B 1 {phase=forward layer=1}, C 1 {phase=forward layer=2}
    stream: D 1 {phase=forward layer=3}, d 2 {phase=backward layer=3}, c 2 {phase=backward layer=2}
    stream: b 2 {phase=backward layer=1}, a 2 {phase=backward layer=0}
    @alloc 4MB use=activation op=wa: A .. a writes A reads B, a
    @alloc 4MB use=activation op=wb: B .. b writes B reads C, b
    @alloc 4MB use=activation op=wc: C .. c writes C reads D, c
    @alloc 4MB use=activation op=wd: D .. d writes D reads d
)";

Bytes peak_of(const Graph& graph) {
  Bytes peak{};
  for (const MemoryCurve& curve : memory_curves(graph, simulate(graph)))
    peak = std::max(peak, curve.peak);
  return peak;
}

TEST(Recompute, Baseline) {
  EXPECT_EQ(simulated(kFourLayers), R"(
stream |ABCDddccbbaa|
)");
}

TEST(Recompute, SegmentsOfTwoComputeTheFirstLayerAgainInFrontOfItsUse) {
  EXPECT_EQ(simulated(kFourLayers, R"({"use": "recompute", "policy": "sqrt"})"), R"(
stream |ABCDddccbbAaa|
)");
}

TEST(Recompute, ASegmentGoesWithItsBackwardPassHoweverLongItWasKept) {
  // The program keeps all blocks to its end, the restored one included.
  Graph graph = parse_graph(R"(
    stream: A 1 {phase=forward layer=0}, B 1 {phase=forward layer=1}, C 1 {phase=forward layer=2}
    stream: D 1 {phase=forward layer=3}, d 2 {phase=backward layer=3}, c 2 {phase=backward layer=2}
    stream: b 2 {phase=backward layer=1}, a 2 {phase=backward layer=0}, e 1 {phase=backward}, f 1
    @alloc 4MB use=activation op=wa: A .. f writes A reads B, a
    @alloc 4MB use=activation op=wb: B .. f writes B reads C, b
    @alloc 4MB use=activation op=wc: C .. f writes C reads D, c
    @alloc 4MB use=activation op=wd: D .. f writes D reads d
  )");
  read_transform_text("recompute:policy=sqrt")->apply(graph, {});
  ASSERT_EQ(graph.allocations().size(), 5U);
  const Allocation& again = graph.allocations().back();
  EXPECT_EQ(graph.name(again.made_by), "A");
  EXPECT_EQ(graph.name(again.freed_by), "a");
}

TEST(Recompute, WhatDropsNothingChangesNothing) {
  EXPECT_EQ(simulated(kFourLayers, R"({"use": "recompute", "share": 0})"), R"(
stream |ABCDddccbbaa|
)");
}

TEST(Recompute, AllIsOneForwardPassInFrontOfTheFirstUse) {
  EXPECT_EQ(simulated(kFourLayers, R"({"use": "recompute", "policy": "all"})"), R"(
stream |ABCDABCDddccbbaa|
)");
}

TEST(Recompute, ADroppedInputComesBackWithWhatNeedsIt) {
  // c is needed first, and recomputing it needs b; a is still in memory.
  EXPECT_EQ(simulated(kFourLayers,
                      R"({"use": "recompute", "policy": "selected", "where": {"op": "/w[bc]/"}})"),
            R"(
stream |ABCDddBCccbbaa|
)");
}

TEST(Recompute, WhatTheForwardPassLetGoIsComputedAgainAsWell) {
  constexpr auto kWithTemporary = R"(
    stream: A 1 {phase=forward}, T 1 {phase=forward}, B 1 {phase=forward}, x 2 {phase=backward}
    stream: b 2 {phase=backward}, a 2 {phase=backward}
    @alloc 4MB use=activation: A .. a writes A reads T, a
    @alloc 2MB use=temporary op=t: T .. x writes T reads B
    @alloc 4MB use=activation op=wb: B .. b writes B reads x, b
  )";
  EXPECT_EQ(simulated(kWithTemporary,
                      R"({"use": "recompute", "policy": "selected", "where": {"op": "wb"}})"),
            R"(
stream |ATBTBxxbbaa|
)");
  Graph graph = parse_graph(kWithTemporary);
  read_transform_text("recompute:policy=selected,where.op=wb")->apply(graph, {});
  ASSERT_EQ(graph.allocations().size(), 5U);
  const Allocation& temporary = graph.allocations()[4];
  EXPECT_EQ(temporary.bytes, Bytes{2'000'000});
  EXPECT_EQ(graph.name(temporary.made_by), "T");
  EXPECT_EQ(graph.name(temporary.freed_by), "B");
  EXPECT_EQ(temporary.use, MemoryUse::temporary);
}

// The workspace of a convolution: nothing reads it, but it must exist when B runs again.
TEST(Recompute, AWorkspaceIsNeededAgainToo) {
  Graph graph = parse_graph(R"(
    stream: A 1 {phase=forward}, B 1 {phase=forward}, C 1 {phase=forward}, x 2 {phase=backward}
    stream: b 2 {phase=backward}, a 2 {phase=backward}
    @alloc 4MB use=activation: A .. a writes A reads B, a
    @alloc 64MB use=temporary op=workspace: B .. B writes B
    @alloc 4MB use=activation op=wb: B .. b writes B reads C, b
    @alloc 4MB use=gradient: x .. a writes x reads b
    @alloc 60MB use=gradient: x .. a writes x reads a
  )");
  const Bytes before = peak_of(graph);
  read_transform_text("recompute:policy=selected,where.op=wb")->apply(graph, {});
  EXPECT_EQ("\n" + to_ascii(graph, simulate(graph)), R"(
stream |ABCxxBbbaa|
)");
  ASSERT_EQ(graph.allocations().size(), 7U);
  std::size_t workspaces = 0;
  for (const Allocation& block : graph.allocations()) {
    if (block.bytes != Bytes{64'000'000}) continue;
    ++workspaces;
    EXPECT_EQ(graph.name(block.made_by), "B");
    EXPECT_EQ(graph.name(block.freed_by), "B");
    EXPECT_EQ(block.use, MemoryUse::temporary);
  }
  EXPECT_EQ(workspaces, 2U);
  // In the forward pass the activation is freed before the peak, but the workspace exists beside
  // the gradients.
  EXPECT_EQ(before, Bytes{72'000'000});
  EXPECT_EQ(peak_of(graph), Bytes{136'000'000});
}

TEST(Recompute, ASegmentKeepsWhatTheOneInFrontGaveIt) {
  // A makes x for B, and x is freed in the forward pass; with recomputation it lives until B runs
  // again.
  Graph graph = parse_graph(R"(
    stream: A 1 {phase=forward layer=0}, B 1 {phase=forward layer=1}, C 1 {phase=forward layer=1}
    stream: D 1 {phase=forward layer=2}, d 2 {phase=backward}, c 2 {phase=backward}
    stream: a 2 {phase=backward}
    @alloc 4MB use=activation: A .. a writes A reads a
    @alloc 2MB use=temporary op=x: A .. C writes A reads B
    @alloc 4MB use=activation: B .. c writes B reads C, c
    @alloc 4MB use=activation: D .. d writes D reads d
  )");
  read_transform_text("recompute:policy=every")->apply(graph, {});
  EXPECT_EQ("\n" + to_ascii(graph, simulate(graph)), R"(
stream |ABCDddBccAaa|
)");
  EXPECT_EQ(graph.name(graph.allocations()[1].freed_by), "B");
  EXPECT_EQ(graph.task(graph.allocations()[1].freed_by).phase, Phase::backward);
}

// Without names of layers: three times n, g, a, which hand one block on, between e and l.
TEST(Recompute, PartsOfAPassThatRepeatAreItsLayers) {
  const auto applied = [](const char* use, const char* second) {
    std::string line = "s: e 1 {phase=forward}", late, blocks;
    for (const std::string part : {"1", "2", "3"}) {
      for (const std::string name : {"n", "g", "a"})
        line += ", " + name + part + "=" + (name == "g" && part == "2" ? second : name.c_str()) +
                " 1 {phase=forward}";
      late = ", b" + part + "=b 1 {phase=backward}" + late;
      const std::string next = part == "3" ? "l" : "n" + std::to_string(std::stoi(part) + 1);
      const auto block = [&](const std::string& from, const std::string& to) {
        blocks += "@alloc 4MB use=activation: " + from + " .. b" + part + " writes " + from +
                  " reads " + to + ", b" + part + "\n";
      };
      block("n" + part, "g" + part);
      block("g" + part, "a" + part);
      block("a" + part, next);
    }
    Graph graph = parse_graph(line + ", l 1 {phase=forward}" + late + "\n" + blocks);
    return read_transform_text(use)->apply(graph, {});
  };
  const Effect every = applied("recompute:policy=every", "g");
  EXPECT_TRUE(every.summary.starts_with("6 activations dropped")) << every.summary;
  const std::string by_parts =
      "layers are unknown: the parts of a forward pass that repeat count as layers";
  EXPECT_NE(std::ranges::find(every.assumptions, by_parts), every.assumptions.end());
  EXPECT_THROW(applied("recompute:policy=every", "other"), Error);
}

TEST(Recompute, TheHostLaunchesAgainAndDoesItsWorkAgain) {
  constexpr auto kLaunched = R"(
    cpu:    p:host 1 {phase=forward}, L:launch 1 {phase=forward}, q:host 1 {phase=backward}
    cpu:    M:launch 1 {phase=backward}, N:launch 1 {phase=backward}
    stream: A 1 {phase=forward}, x 1 {phase=backward}, a 1 {phase=backward}
    L -> A
    M -> x
    N -> a
    @alloc 4MB use=activation made=0 freed=1+1: p .. N writes A reads a
  )";
  EXPECT_EQ(simulated(kLaunched), R"(
cpu    |pLqMN.|
stream |..A.xa|
)");
  EXPECT_EQ(simulated(kLaunched, R"({"use": "recompute", "policy": "all"})"), R"(
cpu    |pLqMpLN.|
stream |..A.x.Aa|
)");
  EXPECT_EQ(simulated(kLaunched, R"({"use": "recompute", "policy": "all", "host_work": false})"),
            R"(
cpu    |pLqMLN.|
stream |..A.xAa|
)");
}

TEST(Recompute, UsesOnOtherStreamsWaitForIt) {
  EXPECT_EQ(simulated(R"(
    one: A 1 {phase=forward}, b 3 {phase=backward}
    two: x 2 {phase=backward}
    A -> x
    b ^-> x
    @alloc 4MB use=activation: A .. x writes A reads b, x
  )",
                      R"({"use": "recompute", "policy": "all"})"),
            R"(
one |AAbbb|
two |..xx.|
)");
}

TEST(Recompute, WhatAnotherDeviceNeedsFirstStays) {
  EXPECT_EQ(simulated(R"(
    one [device=0]: A 1 {phase=forward}, a 2 {phase=backward}
    two [device=1]: B 1 {phase=forward}, b 2 {phase=backward}
    A -> B
    b -> a
    @alloc 4MB use=activation: A .. a writes A reads B, a
    @alloc 4MB use=activation device=1: B .. b writes B reads b
  )",
                      R"({"use": "recompute", "policy": "all"})"),
            R"(
one |A....aa|
two |.BBbb..|
)");
}

TEST(Recompute, BudgetDropsWhatIsCheapestForItsBytes) {
  constexpr auto kDearAndCheap = R"(
    stream: A 5 {phase=forward}, B 1 {phase=forward}, C 3 {phase=forward}, c 1 {phase=backward}
    stream: b 1 {phase=backward}, a 1 {phase=backward}
    @alloc 4MB use=activation: A .. a writes A reads a
    @alloc 4MB use=activation: B .. b writes B reads b
    @alloc 4MB use=activation: C .. c writes C reads c
  )";
  EXPECT_EQ(simulated(kDearAndCheap, R"({"use": "recompute", "policy": "budget", "save": "4MB"})"),
            R"(
stream |AAAAABCCCcBba|
)");
  EXPECT_EQ(simulated(kDearAndCheap, R"({"use": "recompute", "policy": "budget", "share": 0.6})"),
            R"(
stream |AAAAABCCCCCCcBba|
)");
}

/// n equal layers of one block each.
std::string chain(int layers) {
  std::string text = "s:";
  std::string blocks;
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    text += std::string(i > 0 ? "," : "") + " f" + n + " 1 {phase=forward layer=" + n + "}";
    blocks += "@alloc 1MB use=activation made=0 freed=1+2: f" + n + " .. b" + n + " writes f" + n +
              " reads b" + n;
    if (i + 1 < layers) blocks += ", f" + std::to_string(i + 1);
    blocks += "\n";
  }
  for (int i = layers; i-- > 0;) text += ", b" + std::to_string(i) + " 2 {phase=backward}";
  return text + "\n" + blocks;
}

TEST(Recompute, ChainsTakeTheSquareRootOfTheirMemory) {
  for (const int layers : {4, 9, 16, 30, 64, 100, 400}) {
    Graph graph = parse_graph(chain(layers));
    const Nanoseconds before = simulate(graph).length;
    EXPECT_EQ(peak_of(graph), (Bytes{layers * 1'000'000}));
    const Effect effect = read_transform_text("recompute")->apply(graph, {});
    const double root = std::sqrt(layers);
    EXPECT_LE(peak_of(graph).count, static_cast<std::int64_t>((2 * root + 1) * 1e6)) << layers;
    EXPECT_LE(simulate(graph).length - before, layers * 1us) << "more than one forward pass";
    EXPECT_EQ(figure(effect, "peak_after"), static_cast<double>(peak_of(graph).count));
  }
}

TEST(Recompute, NothingIsComputedMoreThanOnceMore) {
  for (const char* policy : {"every", "every,layers=3", "all", "selected", "budget,share=0.5",
                             "budget,share=0.5,exact=false", "sqrt,share=0.5"}) {
    Graph graph = parse_graph(chain(30));
    const std::size_t before = graph.task_count();
    try {
      read_transform_text("recompute:policy=" + std::string(policy))->apply(graph, {});
    } catch (const Error&) {
      EXPECT_STREQ(policy, "every");  // The output of each layer is the next one's input.
      continue;
    }
    EXPECT_LE(graph.task_count(), before + 30) << policy;
    EXPECT_GT(graph.task_count(), before) << policy;
  }
}

TEST(Recompute, ABudgetForThePeakIsKept) {
  for (const int megabytes : {12, 15, 20, 29, 30}) {
    Graph graph = parse_graph(chain(30));
    const Effect effect =
        read_transform_text("recompute:policy=budget,peak=" + std::to_string(megabytes) + "MB")
            ->apply(graph, {});
    EXPECT_LE(peak_of(graph), (Bytes{megabytes * 1'000'000})) << megabytes;
    EXPECT_TRUE(effect.notes.all().empty());
  }
}

TEST(Recompute, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "recompute", "policy": "some"})", "policy: must be one of"},
      {R"({"use": "recompute", "policy": "every"})",
       "policy: every leaves nothing to drop of 4 activations: each is used by another segment or "
       "is in the last, which is needed at once"},
      {R"({"use": "recompute", "save": "1MB"})", "save: is for policy budget, got policy sqrt"},
      {R"({"use": "recompute", "where": {"op": "none"}})",
       "no allocation matches \"where\" (use activation, op \"none\")"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kFourLayers, transform).substr(0, std::string(message).size()), message);
  }
  EXPECT_EQ(simulated("s: A 1\n", R"({"use": "recompute"})").substr(0, 33),
            "this trace does not record memory");
}

}  // namespace
}  // namespace foretrace
