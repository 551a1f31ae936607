// Figures that papers print about their schedules.

#include <gtest/gtest.h>

#include <cmath>

#include "generate/pipeline_runs.h"

namespace foretrace {
namespace {

/// Rows of tables 5 and 9 of arXiv 2401.10241; times in us. Chunks: layers per stage.
struct ZeroBubbleRow {
  std::int64_t stages, micro_batches;
  RankTimes times;
  std::int64_t chunks;
  double one_f_one_b, h1, h2, interleaved;
};
const ZeroBubbleRow kZeroBubble[] = {
    {8, 24, {18522us, 18086us, 9337us, 601us}, 3, 0.2431, 0.1585, 0.1083, 0.1055},
    {8, 32, {18513us, 18086us, 9331us, 626us}, 3, 0.1985, 0.1242, 0.0837, 0.0818},
    {8, 24, {29718us, 29444us, 19927us, 527us}, 4, 0.2347, 0.1323, 0.0698, 0.0808},
    {8, 32, {29802us, 29428us, 19530us, 577us}, 4, 0.1898, 0.1045, 0.0559, 0.0628},
    {16, 48, {11347us, 11248us, 8132us, 377us}, 3, 0.2552, 0.1397, 0.0672, 0.1104},
    {32, 96, {10419us, 10207us, 7715us, 408us}, 2, 0.2646, 0.1421, 0.0641, 0.1493},
};

TEST(ZeroBubble, BubbleRatesAreThoseOfThePaper) {
  for (const ZeroBubbleRow& row : kZeroBubble) {
    const std::string settings = shape(row.stages, row.micro_batches);
    SCOPED_TRACE(settings);
    EXPECT_NEAR(run_of("1f1b", settings, row.times).bubble_rate(), row.one_f_one_b, 1e-4);
    EXPECT_NEAR(run_of("zb_h1", settings, row.times).bubble_rate(), row.h1, 1e-4);
    EXPECT_NEAR(run_of("zb_h2", settings, row.times).bubble_rate(), row.h2, 1e-4);
    const std::string chunks = settings + ",chunks=" + std::to_string(row.chunks);
    EXPECT_NEAR(run_of("interleaved", chunks, row.times).bubble_rate(), row.interleaved, 0.005);
    EXPECT_LT(run_of("zb_v", settings, row.times).bubble_rate(), row.h2);
  }
}

TEST(ZeroBubble, UnitTimesGiveTheMakespansOfTheFigure) {
  const RankTimes unit{1ms, 1ms, 1ms};
  EXPECT_EQ(run_of("1f1b", shape(4, 8), unit).makespan, 33ms);
  EXPECT_EQ(run_of("zb_h1", shape(4, 8), unit).makespan, 27ms);
  const PipelineRun h2 = run_of("zb_h2", shape(4, 8), unit);
  EXPECT_EQ(h2.makespan, 27ms);
  for (const RankRun& rank : h2.ranks) EXPECT_EQ(rank.span(), 24ms);
  EXPECT_EQ(h2.bubble_rate(), 0);
}

TEST(ZeroBubble, TheVHasNoBubbleWithTheActivationsOfOneFOneB) {
  for (const auto& [stages, micro_batches] : {std::pair{4, 8}, {8, 24}, {16, 48}, {5, 9}}) {
    const PipelineRun run = run_of("zb_v", shape(stages, micro_batches), {2ms, 2ms, 2ms});
    EXPECT_NEAR(run.bubble_rate(), 0, 1e-9);
    for (const RankRun& rank : run.ranks) EXPECT_LE(rank.peak_in_flight, 2 * stages);
  }
}

/// arXiv 2405.15362 and its repository: with F = B = W the bubble is about half (two thirds) of
/// 1F1B's.
TEST(ControllableMemory, BubblesAreFractionsOfThoseOfOneFOneB) {
  for (const auto& [stages, micro_batches] : {std::pair{8, 24}, {8, 64}, {16, 48}}) {
    SCOPED_TRACE(shape(stages, micro_batches));
    const RankTimes unit{2ms, 2ms, 2ms};
    const double whole = run_of("1f1b", shape(stages, micro_batches), unit).bubble_rate();
    const PipelineRun half = run_of("v_half", shape(stages, micro_batches), unit);
    const PipelineRun least = run_of("v_min", shape(stages, micro_batches), unit);
    EXPECT_NEAR(half.bubble_rate(), whole / 2, 0.01);
    EXPECT_NEAR(least.bubble_rate(), whole * 2 / 3, 0.015);
    for (const RankRun& rank : half.ranks) EXPECT_LE(rank.peak_in_flight, stages / 2 * 2 + 2);
    for (const RankRun& rank : least.ranks) EXPECT_LE(rank.peak_in_flight, (stages + 4) / 3 * 2);
  }
}

/// arXiv 2107.06925. A row has forward doubling only if the paper has it.
struct ChimeraRow {
  std::int64_t stages, micro_batches, forward, backward, direct, doubling;
};
const ChimeraRow kChimera[] = {
    {4, 4, 1, 1, 10, 0},   {4, 4, 1, 2, 16, 0},   {4, 8, 1, 2, 30, 27},
    {4, 8, 1, 3, 42, 36},  {4, 16, 1, 2, 58, 51}, {8, 8, 1, 2, 36, 0},
    {8, 16, 1, 2, 66, 57}, {8, 16, 1, 3, 94, 76}, {8, 32, 1, 3, 182, 146},
};

TEST(Chimera, MakespansAreThoseOfTheAuthorsOrder) {
  for (const ChimeraRow& row : kChimera) {
    const std::string settings = shape(row.stages, row.micro_batches);
    SCOPED_TRACE(settings);
    const RankTimes times{row.forward * 1ms, row.backward * 1ms};
    EXPECT_EQ(run_of("chimera", settings, times).makespan, row.direct * 1ms);
    if (row.doubling == 0) continue;
    EXPECT_EQ(run_of("chimera", settings + ",units=doubling", times).makespan, row.doubling * 1ms);
  }
}

TEST(Chimera, MakespansFollowTheClosedForms) {
  for (std::int64_t stages = 4; stages <= 32; stages *= 2) {
    for (std::int64_t units = 1; units <= 3; ++units) {
      const PipelineRun run = run_of("chimera", shape(stages, units * stages), {3ms, 5ms});
      EXPECT_EQ(run.makespan, (stages + 2 * (units - 1)) * 3ms + units * (2 * stages - 2) * 5ms);
    }
    const PipelineRun doubled =
        run_of("chimera", shape(stages, 2 * stages) + ",units=doubling", {2ms, 5ms});
    EXPECT_EQ(doubled.makespan, (5 * stages / 2 - 1) * 7ms);
    // With slots of equal length: 3 D of work and D - 2 of bubble.
    const PipelineRun halved =
        run_of("chimera", shape(stages, stages) + ",units=halving", {2ms, 4ms});
    EXPECT_EQ(halved.makespan, (4 * stages - 2) * 2ms);
  }
}

TEST(Chimera, LatencyOfSendsIsAddedWhereItIsNotHidden) {
  const auto makespan = [](Nanoseconds send) {
    return run_of("chimera", shape(4, 4), {1ms, 2ms, 0ms, send}).makespan;
  };
  EXPECT_EQ(makespan(0ms), 16ms);
  EXPECT_EQ(makespan(100us), 16700us);
  EXPECT_EQ(makespan(500us), 19500us);
}

TEST(Chimera, MorePairsOfPipelinesHaveFewerBubbles) {
  const auto slots = [](std::int64_t stages, std::int64_t pairs) {
    const PipelineRun run =
        run_of("chimera", shape(stages, stages) + ",pairs=" + std::to_string(pairs), {1ms, 1ms});
    return run.makespan / 1ms;
  };
  EXPECT_EQ(slots(8, 2), 18);
  EXPECT_EQ(slots(16, 2), 38);
  EXPECT_EQ(slots(16, 4), 34);
}

TEST(Chimera, ActivationsAreBalanced) {
  const RankTimes times{1ms, 2ms};
  using Peaks = std::vector<std::int32_t>;
  EXPECT_EQ(peaks_of(run_of("chimera", shape(4, 4), times)), (Peaks{3, 4, 4, 3}));
  EXPECT_EQ(peaks_of(run_of("chimera", shape(4, 16), times)), (Peaks{3, 4, 4, 3}));
  EXPECT_EQ(peaks_of(run_of("chimera", shape(8, 8), times)), (Peaks{5, 6, 7, 8, 8, 7, 6, 5}));
  const auto doubled = peaks_of(run_of("chimera", shape(4, 8) + ",units=doubling", times));
  EXPECT_EQ(doubled, (Peaks{7, 8, 8, 7}));
  const auto eight = peaks_of(run_of("chimera", shape(8, 16) + ",units=doubling", times));
  EXPECT_EQ(eight, (Peaks{13, 14, 15, 16, 16, 15, 14, 13}));
}

/// Compares idle slots: "up to 50 % fewer bubbles" is the limit for slots of equal length.
TEST(Chimera, HasFewerBubblesThanDappleByTheSharesOfThePaper) {
  const auto idle = [](std::string_view name, std::int64_t stages, const RankTimes& times) {
    const PipelineRun run = run_of(name, shape(stages, stages), times);
    return static_cast<double>((run.makespan - run.ranks[0].busy).count());
  };
  const double equal[] = {0.67, 0.57}, twice[] = {0.56, 0.43, 0.38, 0.35};
  for (int i = 0; i < 4; ++i) {
    const std::int64_t stages = 4 << i;
    const auto fewer = [&](const RankTimes& times) {
      return 1 - idle("chimera", stages, times) / idle("dapple", stages, times);
    };
    if (i < 2) {
      EXPECT_NEAR(fewer({1ms, 1ms}), equal[i], 0.005);
    }
    EXPECT_NEAR(fewer({1ms, 2ms}), twice[i], 0.005);
  }
}

/// Figure 1 of arXiv 2107.06925.
TEST(Figure1, BubbleRatiosAreWithinTwoPoints) {
  EXPECT_NEAR(run_of("gpipe", shape(8, 8), {1ms, 2ms}).bubble_rate(), 0.467, 0.02);
  EXPECT_NEAR(run_of("dapple", shape(16, 16), {1ms, 2ms}).bubble_rate(), 0.484, 0.02);
  EXPECT_NEAR(run_of("gems", shape(8, 64), {1ms, 2ms}).bubble_rate(), 0.824, 0.02);
  EXPECT_NEAR(run_of("chimera", shape(32, 32), {1ms, 1ms}).bubble_rate(), 0.319, 0.02);
}

TEST(TwoBw, BatchesFollowEachOtherWithoutAFlush) {
  const RankTimes times{1ms, 2ms};
  EXPECT_EQ(run_of("pipedream_2bw", shape(4, 4) + ",batches=10", times).makespan, 129ms);
  EXPECT_EQ(10 * run_of("pipedream_flush", shape(4, 4), times).makespan, 210ms);
  const auto ratio = [&](std::int64_t micro_batches) {
    const auto flushed = run_of("pipedream_flush", shape(8, micro_batches), times).makespan;
    const auto twice =
        run_of("2bw", shape(8, micro_batches) + ",batches=100", times).makespan / 100.0;
    return static_cast<double>(flushed.count()) / twice.count();
  };
  EXPECT_NEAR(ratio(8), 1.875, 0.02);
  EXPECT_NEAR(ratio(32), 1.219, 0.01);
}

TEST(Gpipe, MakespanIsThatOfThePaper) {
  for (const std::int64_t stages : {2, 4, 8})
    EXPECT_EQ(run_of("gpipe", shape(stages, 32), {2ms, 3ms}).makespan, (32 + stages - 1) * 5ms);
}

TEST(Interleaved, ChunksDivideTheBubble) {
  const RankTimes times{1ms, 2ms};
  EXPECT_EQ(run_of("interleaved", shape(4, 8) + ",chunks=2", times).makespan, 28500us);
  EXPECT_EQ(run_of("interleaved", shape(4, 8) + ",chunks=4", times).makespan, 26250us);
  EXPECT_EQ(run_of("interleaved", shape(8, 32) + ",chunks=2", times).makespan, 106500us);
  EXPECT_EQ(run_of("interleaved", shape(8, 32) + ",chunks=1", times).makespan,
            run_of("1f1b", shape(8, 32), times).makespan);
}

TEST(DualPipe, MakespansAreThoseOfTheAuthorsLoops) {
  const auto run = [](std::int64_t stages, std::int64_t micro_batches, const RankTimes& times) {
    return run_of("dualpipe", shape(stages, micro_batches), times);
  };
  const RankTimes unit{1ms, 1ms, 1ms};
  const std::int64_t rows[][4] = {{2, 4, 12, 0},  {4, 8, 26, 2},  {4, 10, 32, 2}, {6, 12, 40, 4},
                                  {8, 16, 54, 6}, {8, 20, 66, 6}, {8, 40, 126, 6}};
  for (const auto& [stages, micro_batches, makespan, idle] : rows) {
    SCOPED_TRACE(shape(stages, micro_batches));
    const PipelineRun whole = run(stages, micro_batches, unit);
    EXPECT_EQ(whole.makespan, makespan * 1ms);
    EXPECT_EQ(whole.makespan - whole.ranks[0].busy, idle * 1ms);
    for (const RankRun& rank : whole.ranks) EXPECT_LE(rank.peak_in_flight, stages + 1);
  }
  const RankTimes others{1ms, 1200us, 700us};
  EXPECT_EQ(run(4, 10, others).makespan, 31500us);
  EXPECT_EQ(run(8, 20, others).makespan, 65500us);
}

TEST(DualPipe, TheVHasTheBubblesOfItsHalvedChunks) {
  for (const std::int64_t stages : {2, 4, 6, 8}) {
    const PipelineRun run =
        run_of("dualpipe_v", shape(stages, 2 * stages), {2ms, 2ms, 2ms});  // Chunks of 1 ms.
    EXPECT_EQ(run.makespan - run.ranks[0].busy, (2 * stages - 2) * 1ms);
  }
}

}  // namespace
}  // namespace foretrace
