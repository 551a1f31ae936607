#include <gtest/gtest.h>

#include <random>

#include "foretrace/simulate.h"
#include "generate/pipeline_runs.h"
#include "generate/pipeline_tasks.h"
#include "support/picture.h"

namespace foretrace {
namespace {

class RandomPlans {
 public:
  explicit RandomPlans(unsigned seed) : random_(seed) {}
  std::int64_t draw(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_() % static_cast<unsigned>(most - least + 1));
  }
  Nanoseconds time(std::int64_t most_us) { return draw(1, most_us * 1000) * 1ns; }

  /// A schedule of any kind, with any settings that it supports.
  Schedule schedule() {
    while (true) {
      const ScheduleEntry& entry =
          schedules()[static_cast<std::size_t>(draw(0, std::ssize(schedules()) - 1))];
      const std::string settings = shape(draw(1, 8), draw(1, 24));
      if (refusal_of(entry.name, settings).empty()) return schedule_of(entry.name, settings);
    }
  }
  PipelineCosts costs(const Schedule& schedule, std::int64_t most_send_us) {
    PipelineCosts costs;
    for (std::int32_t i = 0; i < schedule.stages; ++i)
      costs.stages.push_back({.forward = 20us + time(50),
                              .input_gradient = 20us + time(50),
                              .weight_gradient = time(50),
                              .send_forward = time(most_send_us),
                              .send_backward = time(most_send_us),
                              .all_reduce = draw(0, 1) * time(100),
                              .update = draw(0, 1) * time(10)});
    return costs;
  }

 private:
  std::mt19937 random_;
};

TEST(Pipeline, TheGraphAndTheCompiledFormAgree) {
  RandomPlans random(1);
  for (int run = 0; run < 150; ++run) {
    const Schedule schedule = random.schedule();
    const PipelineCosts first = random.costs(schedule, 60), second = random.costs(schedule, 60);
    SCOPED_TRACE(std::to_string(run) + " " + schedule.name);
    PipelineReplay replay(schedule, first);
    EXPECT_EQ(replay.run(first).makespan, simulate(build_pipeline(schedule, first).graph).length);
    if (!replay.serves(second)) continue;
    EXPECT_EQ(replay.run(second).makespan, simulate(build_pipeline(schedule, second).graph).length);
  }
}

TEST(Pipeline, SendsThatCannotQueueOnlyDelay) {
  RandomPlans random(2);
  int delayed = 0;
  for (int run = 0; run < 150; ++run) {
    const Schedule schedule = random.schedule();
    const PipelineCosts costs = random.costs(schedule, 20);
    SCOPED_TRACE(std::to_string(run) + " " + schedule.name);
    PipelineKind kind = kind_of(schedule, costs);
    if (kind.sends != Sends::overlapping) continue;
    ++delayed;
    const auto table = time_table(schedule, costs);
    const auto fast = simulate(pipeline_tasks(schedule, kind, table, true).graph).length;
    kind.sends = Sends::queued;
    EXPECT_EQ(simulate(pipeline_tasks(schedule, kind, table, true).graph).length, fast);
  }
  EXPECT_GT(delayed, 50);
}

TEST(Pipeline, SendsThatTakeLongerThanPassesQueue) {
  const Schedule schedule = schedule_of("gpipe", "stages=2,micro_batches=3");
  PipelineCosts costs = costs_of(schedule, {2us, 2us, 0us, 0us});
  costs.stages[0].send_forward = 4us;
  EXPECT_EQ(picture(build_pipeline(schedule, costs).graph), R"(
rank 0      |000000............000000|
rank 1      |......11..11..11111111..|
rank 0 to 1 |..000000000000..........|
rank 1 to 0 |........................|
)");
}

TEST(Pipeline, HeldResultsLeaveWithTheNextPass) {
  Schedule schedule = schedule_of("1f1b", "stages=2,micro_batches=2");
  schedule.orders[0][0].sends_late = true;
  const PipelineCosts costs = costs_of(schedule, {1us, 2us});
  EXPECT_EQ(picture(build_pipeline(schedule, costs).graph), R"(
rank 0 |00...00.00|
rank 1 |..111111..|
)");
}

TEST(Pipeline, GpipeAndOneFOneBTakeTheSameTimeForAnyTimes) {
  RandomPlans random(3);
  for (int run = 0; run < 100; ++run) {
    const std::int64_t stages = random.draw(1, 12), micro_batches = random.draw(1, 40);
    const RankTimes times{random.time(50), random.time(50), random.time(50)};
    const Nanoseconds expected =
        (stages + micro_batches - 1) * (times.forward + times.input + times.weight);
    const std::string settings = shape(stages, micro_batches);
    EXPECT_EQ(run_of("gpipe", settings, times).makespan, expected);
    EXPECT_EQ(run_of("1f1b", settings, times).makespan, expected);
  }
}

TEST(Pipeline, InterleavedDividesTheBubbleForAnyTimes) {
  RandomPlans random(4);
  for (int run = 0; run < 60; ++run) {
    const std::int64_t stages = random.draw(2, 8), groups = random.draw(1, 5),
                       chunks = random.draw(1, 4);
    const RankTimes times{random.draw(1, 40) * 12us, random.draw(1, 40) * 12us};
    const auto run_time =
        run_of("interleaved", shape(stages, stages * groups) + ",chunks=" + std::to_string(chunks),
               times)
            .makespan;
    const Nanoseconds both = times.forward + times.input;
    EXPECT_EQ(run_time, stages * groups * both + (stages - 1) * both / chunks);
  }
}

/// Section 2.2 of arXiv 2401.10241, stages counted from 1. H1 keeps (p-i+1) M_B + (i-1) M_W; H2
/// keeps (2p-2i+1) M_B + (2i-2) M_W.
TEST(Pipeline, ActivationsAreKeptUpToInputAndWeightGradients) {
  constexpr std::int64_t kStages = 5, kWhole = 1000, kForWeight = 400;
  for (const std::int64_t lead : {1, 2}) {
    const Schedule schedule = schedule_of(lead == 1 ? "zb_h1" : "zb_h2", shape(kStages, 30));
    PipelineCosts costs = costs_of(schedule, {1ms, 1ms, 1ms});
    for (StageCosts& stage : costs.stages)
      stage.activations = {kWhole}, stage.activations_for_weight = {kForWeight};
    const PipelineRun run = run_pipeline(schedule, costs);
    for (std::int64_t i = 1; i <= kStages; ++i) {
      const std::int64_t whole = lead * (kStages - i) + 1, weight = lead * (i - 1);
      EXPECT_EQ(run.ranks[static_cast<std::size_t>(i - 1)].peak_activations.count,
                whole * kWhole + weight * kForWeight);
    }
  }
}

TEST(Pipeline, RanksKeepTheWeightsOfAllStagesAndVersions) {
  const auto parameters = [](std::string_view name, const std::string& settings) {
    const Schedule schedule = schedule_of(name, settings);
    PipelineCosts costs = costs_of(schedule, {1ms, 2ms});
    for (StageCosts& stage : costs.stages) stage.parameters = {100 / schedule.chunks};
    std::vector<std::int64_t> bytes;
    for (const RankRun& rank : run_pipeline(schedule, costs).ranks)
      bytes.push_back(rank.parameters.count);
    return bytes;
  };
  using Bytes4 = std::vector<std::int64_t>;
  EXPECT_EQ(parameters("1f1b", shape(4, 8)), (Bytes4{100, 100, 100, 100}));
  EXPECT_EQ(parameters("chimera", shape(4, 8)), (Bytes4{200, 200, 200, 200}));
  EXPECT_EQ(parameters("chimera", shape(4, 8) + ",pairs=2"), (Bytes4{400, 400, 400, 400}));
  EXPECT_EQ(parameters("gems", shape(4, 8)), (Bytes4{200, 200, 200, 200}));
  EXPECT_EQ(parameters("interleaved", shape(4, 8)), (Bytes4{100, 100, 100, 100}));
  EXPECT_EQ(parameters("pipedream", shape(4, 8)), (Bytes4{400, 300, 200, 100}));
  EXPECT_EQ(parameters("pipedream_2bw", shape(4, 8)), (Bytes4{200, 200, 200, 200}));
}

TEST(Pipeline, AllReducesWaitForEveryCopyOfTheStageAndHideBehindPasses) {
  const Schedule schedule = schedule_of("chimera", shape(4, 4));
  PipelineCosts costs = costs_of(schedule, {1us, 2us});
  for (StageCosts& stage : costs.stages) stage.all_reduce = 3us;
  EXPECT_EQ(picture(build_pipeline(schedule, costs).graph), R"(
rank 0               |00.333333.00..00....|
rank 1               |.1212.22112211......|
rank 2               |.1212.22112211......|
rank 3               |00.333333.00..00....|
rank 0 gradients     |....................|
rank 1 gradients     |....................|
rank 2 gradients     |....................|
rank 3 gradients     |....................|
gradients of stage 0 |................000.|
gradients of stage 1 |.................111|
gradients of stage 2 |..............222...|
gradients of stage 3 |.........333........|
)");
  const Nanoseconds whole = run_pipeline(schedule, costs).makespan;
  EXPECT_LT(whole, 16us + 2 * 3us);
}

TEST(Pipeline, UpdatesWaitForTheirAllReduce) {
  const Schedule schedule = schedule_of("1f1b", shape(2, 2));
  PipelineCosts costs = costs_of(schedule, {1us, 2us});
  for (StageCosts& stage : costs.stages) stage.all_reduce = 3us, stage.update = 1us;
  EXPECT_EQ(picture(build_pipeline(schedule, costs).graph), R"(
rank 0           |00..00.00...0|
rank 1           |.111111...1..|
rank 0 gradients |.........000.|
rank 1 gradients |.......111...|
)");
}

TEST(Pipeline, RecomputationPrecedesBackwardPasses) {
  const Schedule schedule = schedule_of("1f1b", shape(4, 8));
  PipelineCosts costs = costs_of(schedule, {1us, 2us});
  for (StageCosts& stage : costs.stages) stage.recompute = 1us;
  EXPECT_EQ(run_pipeline(schedule, costs).makespan, 11 * 4us);
}

TEST(Pipeline, OverlappedPairsSaveTheirShare) {
  const Schedule schedule = schedule_of("dualpipe", shape(4, 20));
  PipelineCosts costs = costs_of(schedule, {1ms, 1ms, 1ms});
  const Nanoseconds apart = run_pipeline(schedule, costs).makespan;
  costs.overlap = 0.2;
  EXPECT_LT(run_pipeline(schedule, costs).makespan, apart);
}

TEST(Pipeline, CostsMustFitTheSchedule) {
  const Schedule schedule = schedule_of("1f1b", shape(2, 2));
  PipelineCosts costs = costs_of(schedule, {1us, 2us});
  costs.stages.pop_back();
  try {
    run_pipeline(schedule, costs);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "stages: must have costs for each of the 2 stages, got 1");
  }
}

TEST(Pipeline, AnyTimesKeepTheLimitsOfWorkAndOfOneMicroBatch) {
  RandomPlans random(5);
  for (int run = 0; run < 200; ++run) {
    const Schedule schedule = random.schedule();
    PipelineCosts costs = random.costs(schedule, 20);
    Nanoseconds through{0};
    for (StageCosts& stage : costs.stages) {
      stage.all_reduce = stage.update = 0ns;
      through += stage.forward + stage.input_gradient;
    }
    SCOPED_TRACE(std::to_string(run) + " " + schedule.name);
    const PipelineRun found = run_pipeline(schedule, costs);
    EXPECT_GE(found.makespan, through);
    Nanoseconds work{0}, busy{0};
    for (const StageCosts& stage : costs.stages)
      work +=
          schedule.micro_batches * (stage.forward + stage.input_gradient + stage.weight_gradient);
    for (const RankRun& rank : found.ranks) {
      EXPECT_GE(rank.span(), rank.busy);
      busy += rank.busy;
    }
    EXPECT_EQ(busy, work);
    EXPECT_GE(found.bubble_rate(), 0);
    EXPECT_LT(found.bubble_rate(), 1);
  }
}

}  // namespace
}  // namespace foretrace
