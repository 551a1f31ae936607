#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <ranges>

#include "support/schedules.h"

namespace foretrace {
namespace {

/// The error that is found in 1F1B on three ranks and four micro-batches after `change`.
template <class Change>
std::string fault_after(const Change& change) {
  Schedule schedule = schedule_of("1f1b", "stages=3,micro_batches=4");
  change(schedule.orders);
  const auto fault = find_fault(schedule);
  return fault ? fault->text : "";
}

using Orders = std::vector<std::vector<Action>>;

TEST(Legal, EverySettingIsRefusedOrMakesALegalSchedule) {
  std::mt19937 random(17);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  for (const ScheduleEntry& entry : schedules()) {
    int made = 0;
    for (int run = 0; run < 120; ++run) {
      std::string settings =
          "stages=" + std::to_string(draw(1, 14)) + ",micro_batches=" + std::to_string(draw(1, 60));
      if (entry.name == "interleaved") settings += ",chunks=" + std::to_string(draw(1, 4));
      if (entry.name == "pipedream_2bw") settings += ",batches=" + std::to_string(draw(1, 4));
      if (entry.name == "chimera") {
        const char* units[] = {"direct", "doubling", "halving"};
        settings += ",pairs=" + std::to_string(draw(1, 3)) + ",units=" + units[draw(0, 2)];
      }
      SCOPED_TRACE(std::string(entry.name) + ":" + settings);
      if (!refusal_of(entry.name, settings).empty()) continue;
      ++made;
      const Schedule schedule = schedule_of(entry.name, settings);
      const auto fault = find_fault(schedule);
      EXPECT_FALSE(fault) << fault->text;
      EXPECT_EQ(schedule.in_flight_limits.size(), schedule.orders.size());
    }
    EXPECT_GT(made, 10) << entry.name;
  }
}

TEST(Legal, MissingAndRepeatedPassesAreNamed) {
  EXPECT_EQ(fault_after([](Orders& orders) { orders[1].erase(orders[1].begin() + 4); }),
            "rank 1, slot 1: no rank runs 1B1 or 1I1, which 1F1 needs");
  EXPECT_EQ(fault_after([](Orders& orders) { orders[1].push_back(orders[1][0]); }),
            "rank 1, slot 10: 1F0 repeats work that rank 1 runs at slot 0");
  EXPECT_EQ(fault_after([](Orders& orders) { orders[0][0].micro_batch = 9; }),
            "rank 0, slot 0: 0F9 is not among the 3 stages and 4 micro-batches");
}

TEST(Legal, ADeadlockNamesRankSlotAndTheActionItWaitsFor) {
  EXPECT_EQ(fault_after([](Orders& orders) { std::swap(orders[0][0], orders[0][3]); }),
            "rank 0, slot 0: 0B0 waits for 0F0, which rank 0 runs at slot 3; this is a deadlock");
  EXPECT_EQ(fault_after([](Orders& orders) { std::swap(orders[1][3], orders[1][4]); }), "");
  // Rank 0 waits as well, but only for the two others, which wait for each other.
  EXPECT_EQ(fault_after([](Orders& orders) { std::swap(orders[2][1], orders[2][4]); }),
            "rank 1, slot 2: 1B0 waits for 2B0, which rank 2 runs at slot 4; this is a deadlock");
}

TEST(Legal, WeightGradientsFollowTheirInputGradient) {
  Schedule schedule = schedule_of("zb_h1", "stages=2,micro_batches=2");
  std::swap(schedule.orders[0][2], schedule.orders[0][3]);
  EXPECT_EQ(find_fault(schedule)->text,
            "rank 0, slot 2: 0W0 waits for 0I0, which rank 0 runs at slot 3; this is a deadlock");
}

TEST(Legal, APassBelongsToTheRankOfItsForwardPass) {
  EXPECT_EQ(fault_after([](Orders& orders) {
              orders[0].push_back(orders[1][2]);
              orders[1].erase(orders[1].begin() + 2);
            }),
            "rank 0, slot 10: 1B0 must be run by the rank of the forward pass, 1");
}

TEST(Legal, VersionsAreMadeBeforeTheyAreUsed) {
  EXPECT_EQ(fault_after([](Orders& orders) { orders[2][0].version = 1; }),
            "rank 2, slot 0: 2F0 waits for version 1 of the weights, which no update before it "
            "makes");
  Schedule schedule = schedule_of("pipedream", "stages=2,micro_batches=3");
  for (Action& action : schedule.orders[1]) {
    if (action.kind == ActionKind::backward && action.micro_batch == 2) action.version = 0;
  }
  EXPECT_EQ(
      find_fault(schedule)->text,
      "rank 1, slot 9: 1B2 must use version 2 of the weights, as its forward pass does, not 0");
}

TEST(Legal, RanksReduceTheirStagesInOneOrder) {
  Schedule schedule = schedule_of("chimera", "stages=2,micro_batches=2");
  auto& order = schedule.orders[1];
  const auto reduces = [](const Action& action) { return action.kind == ActionKind::reduce; };
  const auto first = std::find_if(order.begin(), order.end(), reduces);
  std::swap(*first, *std::find_if(first + 1, order.end(), reduces));
  EXPECT_EQ(find_fault(schedule)->text,
            "rank 0, slot 4: 1REDUCE_GRAD waits for other ranks with this stage, which reduce "
            "another stage first");
}

TEST(Legal, MorePassesInFlightThanPromisedAreAFault) {
  Schedule schedule = schedule_of("gpipe", "stages=2,micro_batches=4");
  schedule.in_flight_limits = {2, 2};
  EXPECT_EQ(find_fault(schedule)->text,
            "rank 0, slot 0: has 4 forward passes in flight, but must have at most 2");
}

TEST(Csv, RoundTripsEveryScheduleThatPyTorchHasWordsFor) {
  for (const ScheduleEntry& entry : schedules()) {
    SCOPED_TRACE(entry.name);
    Schedule schedule = schedule_of(entry.name, "stages=4,micro_batches=8");
    const auto goes_up = [](const Action& action) { return action.pipeline != 0; };
    if (std::ranges::any_of(schedule.orders | std::views::join, goes_up)) {
      EXPECT_THROW(schedule_to_csv(schedule), Error);
      continue;
    }
    const std::string text = schedule_to_csv(schedule);
    EXPECT_EQ(schedule_to_csv(schedule_from_csv(text)), text);
  }
}

TEST(Csv, IsThatOfPyTorch) {
  EXPECT_EQ(schedule_to_csv(schedule_of("zb_h1", "stages=2,micro_batches=1")),
            "0F0,0I0,0W0\n1F0,1I0,1W0\n");
  const Schedule read = schedule_from_csv(
      "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\r\n"
      "1RECV_F0,1F0,, 1B0,1SEND_B0,1RECV_F1,1F1,1B1\n");
  EXPECT_EQ(schedule_to_csv(read), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(schedule_to_csv(schedule_from_csv("0F0,0F1,0BW0,0B1,0W1\n")), "0F0,0F1,0B0,0I1,0W1\n");
  EXPECT_EQ(read.stages, 2);
  EXPECT_EQ(read.micro_batches, 2);
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  const auto refusal = [](std::string_view text) -> std::string {
    try {
      schedule_from_csv(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("0F0,0X0\n"),
            "line 1: column 2: must be a stage, F, B, I or W, and a micro-batch, as in 2F0, got "
            "'0X0'");
  EXPECT_EQ(refusal("0F0,0B0\n1F0,(1F1;1B0\n"),
            "line 2: column 2: must be a pair as in (0F4;3B2)OVERLAP_F_B, got '(1F1;1B0'");
  EXPECT_EQ(refusal(""), "must have a line of actions for each rank, got none");
  EXPECT_EQ(refusal("0F99999999999,0B0\n").substr(0, 29), "line 1: column 1: must be a s");
  EXPECT_EQ(refusal("0B0,0F0\n"),
            "rank 0, slot 0: 0B0 waits for 0F0, which rank 0 runs at slot 1; this is a deadlock");
}

TEST(Csv, AnyTextIsRefusedOrMakesALegalSchedule) {
  std::mt19937 random(5);
  constexpr std::string_view kLetters = "0123FBIW,;()\nSEND_F OVERLAP_F_B";
  const std::string sound = schedule_to_csv(schedule_of("dualpipe_v", "stages=2"));
  int legal = 0;
  for (int run = 0; run < 3000; ++run) {
    std::string text = sound;
    for (unsigned changes = random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = kLetters[random() % kLetters.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 9);
          break;
        default:
          text.insert(at, sound.substr(random() % sound.size(), random() % 9));
      }
    }
    try {
      EXPECT_FALSE(find_fault(schedule_from_csv(text)));
      ++legal;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(legal, 500);
}

}  // namespace
}  // namespace foretrace
