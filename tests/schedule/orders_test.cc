// The orders of schedules, compared with their papers and programs.

#include <gtest/gtest.h>

#include "support/schedules.h"

namespace foretrace {
namespace {

/// "0F0 0F1 0B0" of one rank, without all-reduces and updates.
std::string passes(const Schedule& schedule, std::size_t rank) {
  std::string text;
  for (const Action& action : schedule.orders[rank]) {
    if (action.kind == ActionKind::reduce || action.kind == ActionKind::update) continue;
    text += (text.empty() ? "" : " ") + to_string(action);
  }
  return text;
}

std::string whole(const Schedule& schedule, std::size_t rank) {
  std::string text;
  for (const Action& action : schedule.orders[rank])
    text += (text.empty() ? "" : " ") + to_string(action);
  return text;
}

TEST(Orders, OneFOneBRunsAheadByTheDistanceToTheLastStage) {
  const Schedule schedule = schedule_of("1f1b", "stages=3,micro_batches=4");
  EXPECT_EQ(whole(schedule, 0), "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3 0REDUCE_GRAD 0UPDATE");
  EXPECT_EQ(passes(schedule, 1), "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3");
  EXPECT_EQ(passes(schedule, 2), "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3");
}

TEST(Orders, GpipeRunsBackwardInTheReverseOrder) {
  EXPECT_EQ(passes(schedule_of("gpipe", "stages=2,micro_batches=3"), 1), "1F0 1F1 1F2 1B2 1B1 1B0");
}

TEST(Orders, GemsFollowsABackwardPassWithTheForwardPassOfTheOtherDirection) {
  const Schedule schedule = schedule_of("gems", "stages=2,micro_batches=3");
  EXPECT_EQ(passes(schedule, 0), "0F0 0B0 1F1 1B1 0F2 0B2");
  EXPECT_EQ(passes(schedule, 1), "1F0 1B0 0F1 0B1 1F2 1B2");
}

/// The example in Megatron-LM: PP 2, VP 2, group 3, 5 micro-batches.
TEST(Orders, InterleavedGoesThroughChunksInGroups) {
  const Schedule schedule = schedule_of("interleaved", "stages=2,micro_batches=5,chunks=2,group=3");
  std::string micro_batches, chunks;
  for (const Action& action : schedule.orders[0]) {
    if (action.kind != ActionKind::forward) continue;
    micro_batches += std::to_string(action.micro_batch);
    chunks += std::to_string(action.stage / 2);
  }
  EXPECT_EQ(micro_batches, "0120123434");
  EXPECT_EQ(chunks, "0001110011");
}

/// The loops of the authors' program. H = D/2, a = H - w, b = H - a; "own" is the direction in
/// which the stage is w, "other" the one in which it is D - 1 - w; mirrored in the second half.
std::string authors_chimera(std::int64_t stages, std::int64_t worker, std::int64_t units,
                            bool doubles) {
  const std::int64_t half = stages / 2, mirrored = stages - 1 - worker;
  const bool first = worker < half;
  const std::int64_t a = half - (first ? worker : mirrored), b = half - a;
  const std::int64_t own = first ? 0 : 1;
  std::array<std::array<std::int64_t, 2>, 2> next{};
  std::string text;
  const auto run = [&](char kind, std::int64_t direction) {
    const std::int64_t stage = direction == 0 ? worker : mirrored;
    for (int i = 0; i < (kind == 'F' && doubles ? 2 : 1); ++i) {
      auto& count = next[kind == 'F'][static_cast<std::size_t>(direction)];
      text += (text.empty() ? "" : " ") + std::to_string(stage) + kind +
              std::to_string(2 * count++ + direction);
    }
  };
  for (std::int64_t unit = 0; unit < units; ++unit) {
    for (std::int64_t i = 0; i < a; ++i) {
      if (unit > 0) run('B', own);
      run('F', own);
    }
    for (std::int64_t i = 0; i < b; ++i) run('F', 1 - own), run('F', own);
    for (std::int64_t i = 0; i < a; ++i) run('F', 1 - own), run('B', 1 - own);
    for (std::int64_t i = 0; i < (doubles ? b + half : b); ++i) run('B', own), run('B', 1 - own);
  }
  for (std::int64_t i = 0; i < a; ++i) run('B', own);
  return text;
}

TEST(Orders, ChimeraIsThatOfTheAuthorsProgram) {
  for (std::int64_t stages = 2; stages <= 12; stages += 2) {
    for (std::int64_t units = 1; units <= 3; ++units) {
      const std::string settings = "stages=" + std::to_string(stages) + ",micro_batches=";
      const auto all = units * stages;
      const Schedule direct = schedule_of("chimera", settings + std::to_string(all));
      const Schedule doubled =
          schedule_of("chimera", settings + std::to_string(2 * all) + ",units=doubling");
      for (std::int64_t worker = 0; worker < stages; ++worker) {
        SCOPED_TRACE(settings + std::to_string(all) + " worker " + std::to_string(worker));
        const auto at = static_cast<std::size_t>(worker);
        EXPECT_EQ(passes(direct, at), authors_chimera(stages, worker, units, false));
        EXPECT_EQ(passes(doubled, at), authors_chimera(stages, worker, units, true));
      }
    }
  }
}

TEST(Orders, ChimeraReducesLateStagesBeforeItsLastPasses) {
  const Schedule schedule = schedule_of("chimera", "stages=4,micro_batches=4");
  EXPECT_EQ(whole(schedule, 0),
            "0F0 0F2 3F1 3B1 3F3 3B3 3REDUCE_GRAD 0B0 0B2 0REDUCE_GRAD 3UPDATE 0UPDATE");
  EXPECT_EQ(whole(schedule, 1),
            "1F0 2F1 1F2 2F3 2B1 1B0 2B3 1B2 2REDUCE_GRAD 1REDUCE_GRAD 2UPDATE 1UPDATE");
}

TEST(Orders, ChimeraHalvesBackwardPasses) {
  EXPECT_EQ(passes(schedule_of("chimera", "stages=2,micro_batches=2,units=halving"), 0),
            "0F0 1F1 1B1a 0B0a 1B1b 0B0b");
}

TEST(Orders, ZeroBubbleDelaysWeightGradients) {
  EXPECT_EQ(passes(schedule_of("zb_h1", "stages=2,micro_batches=3"), 0),
            "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
  EXPECT_EQ(passes(schedule_of("zb_h1", "stages=2,micro_batches=3"), 1),
            "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2");
}

TEST(Versions, TwoBwUsesTheVersionOfItsRule) {
  constexpr std::int32_t kBatch = 6;
  const Schedule schedule = schedule_of("pipedream_2bw", "stages=4,micro_batches=6,batches=5");
  for (const auto& order : schedule.orders) {
    std::int32_t newest = 0;
    for (const Action& action : order) {
      if (action.kind == ActionKind::update) newest = action.version;
      if (action.kind != ActionKind::forward && action.kind != ActionKind::backward) continue;
      EXPECT_EQ(action.version, std::max(action.micro_batch / kBatch - 1, 0));
      // The gradient belongs to the weight version before the one that it updates.
      if (action.kind == ActionKind::backward && action.micro_batch >= kBatch) {
        EXPECT_EQ(newest - action.version, 1);
      }
    }
  }
  EXPECT_EQ(versions_kept(schedule), (std::vector<std::int32_t>{2, 2, 2, 2}));
  EXPECT_EQ(peaks_in_flight(schedule), (std::vector<std::int32_t>{4, 3, 2, 1}));
}

TEST(Versions, PipedreamStashesAsManyAsAreInFlight) {
  const Schedule schedule = schedule_of("pipedream", "stages=4,micro_batches=12");
  EXPECT_EQ(versions_kept(schedule), (std::vector<std::int32_t>{4, 3, 2, 1}));
  for (std::size_t stage = 0; stage < 4; ++stage) {
    for (const Action& action : schedule.orders[stage]) {
      if (action.kind != ActionKind::forward) continue;
      const auto delay = static_cast<std::int32_t>(3 - stage);
      EXPECT_EQ(action.version, std::max(action.micro_batch - delay, 0));
    }
  }
}

/// A limit that no order reaches would let a rank keep more activations than its schedule has.
TEST(Orders, EveryScheduleReachesItsLimitOfPassesInFlight) {
  for (const ScheduleEntry& entry : schedules()) {
    for (const char* settings : {"stages=4,micro_batches=16", "stages=6,micro_batches=24"}) {
      const Schedule schedule = schedule_of(entry.name, settings);
      EXPECT_EQ(peaks_in_flight(schedule), schedule.in_flight_limits) << entry.name << settings;
    }
  }
}

TEST(Names, SynonymsMeanTheSameSchedule) {
  EXPECT_EQ(schedule_of("DAPPLE", "stages=2").name, "1f1b");
  EXPECT_EQ(schedule_of("PipeDream-Flush", "stages=2").name, "1f1b");
  EXPECT_EQ(schedule_of("ZB-H2", "stages=2").name, "zb_h2");
  EXPECT_EQ(refusal_of("chimaera", "stages=2").substr(0, 60),
            "there is no schedule 'chimaera' (did you mean \"chimera\"?); m");
}

TEST(Refusals, NameTheSettingAndTheReason) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"chimera", "stages=5",
       "stages: must be even for chimera, as half of the pipelines go the other way, got 5"},
      {"chimera", "stages=8,pairs=3", "pairs: must divide half the stages, 4, got 3"},
      {"dualpipe", "stages=5,micro_batches=20",
       "stages: must be even for dualpipe, as each rank has a partner in the other half, got 5"},
      {"dualpipe", "stages=4,micro_batches=7",
       "micro_batches: must be even and at least twice the stages for dualpipe, got 7 for 4 "
       "stages"},
      {"dualpipe", "stages=4,micro_batches=6",
       "micro_batches: must be even and at least twice the stages for dualpipe, got 6 for 4 "
       "stages"},
      {"dualpipe_v", "stages=4,micro_batches=7",
       "micro_batches: must be at least twice the stages for dualpipe_v, got 7 for 4 stages"},
      {"interleaved", "stages=4,micro_batches=3",
       "micro_batches: must be a multiple of 4, or leave a remainder of at least the number of "
       "stages, because otherwise ranks deadlock, got 3 for 4 stages"},
      {"interleaved", "stages=4,group=3", "group: must be at least the number of stages, 4, got 3"},
      {"pipedream_2bw", "stages=4,micro_batches=3",
       "micro_batches: must be at least the number of stages, because two versions of the weights "
       "are not enough otherwise, got 3 for 4 stages"},
      {"gpipe", "micro_batches=0", "micro_batches: must be at least 1, got 0"},
  };
  for (const auto& [name, settings, message] : cases)
    EXPECT_EQ(refusal_of(name, settings), message);
}

}  // namespace
}  // namespace foretrace
