#include "question/advise/bounds.h"

#include <gtest/gtest.h>

#include <random>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "job/step_cost.h"
#include "support/random_graph.h"

namespace foretrace {
namespace {

Nanoseconds time_of(const Graph& graph) { return step_times(graph, simulate(graph)).step_time; }

/// One line for each ceiling of the ladder that the graph has work for.
std::string ladder(std::string_view text) {
  const Graph graph = parse_graph(text);
  std::string all = "\n";
  for (const AdviceCeiling& ceiling : ladder_of(graph, time_of(graph))) {
    if (!ceiling.is_present) continue;
    all += ceiling.name + " " + to_text(ceiling.step_time) + ", " +
           std::string(to_string(ceiling.bound)) + "\n";
  }
  return all;
}

std::string path(std::string_view text) {
  const Graph graph = parse_graph(text);
  const PathShares shares = path_shares(graph, simulate(graph, {.reasons = true}));
  std::string all;
  for (std::size_t i = 0; i < kPathParts; ++i) {
    if (shares.parts[i] == 0ns) continue;
    all += (all.empty() ? "" : ", ") + std::string(to_string(static_cast<PathPart>(i))) + " " +
           to_text(shares.parts[i]);
  }
  return all;
}

//     cpu  |aaaaLLLLLLbbbbLLLLLL|
//     gpu  |          AAAAA     BBBBB|
constexpr auto kLaunchBound = R"(
    cpu: a:host 4, L:launch 6, b:host 4, M:launch 6
    gpu: A 5, B 5
    L ^->+6 A [measured launch]
    M ^->+6 B [measured launch]
)";

TEST(Ladder, OfAJobThatLaunches) {
  EXPECT_EQ(ladder(kLaunchBound), R"(
launches 10 us, kernels
host 10 us, kernels
overlap 20 us, host work
all 10 us, kernels
)");
}

//     cpu  |LL          sMM|
//     gpu  |  AAAAAAAAAA   BBBBBBBBBB|
TEST(Ladder, OfAHostThatWaits) {
  EXPECT_EQ(ladder(R"(
    cpu: L:launch 2, s:sync 1, M:launch 2
    gpu: A 10, B 10
    L -> A [measured launch]
    M -> B [measured launch]
    A -> s [measured "device sync"]
)"),
            R"(
launches 20 us, kernels
host 20 us, kernels
syncs 22 us, kernels
overlap 20 us, kernels
all 20 us, kernels
)");
}

//     cpu  |iiiiiiLL|
//     gpu  |        cccAAAAnnnnn|
TEST(Ladder, OfEachKindOfWorkByItself) {
  EXPECT_EQ(ladder(R"(
    cpu: i:input 6, L:launch 2
    gpu: c:copy_in 3, A 4, n:collective 5
    L -> c [measured launch]
)"),
            R"(
launches 18 us, input
host 18 us, input
input 14 us, communication
copies 17 us, input
communication 15 us, input
overlap 12 us, kernels
all 4 us, kernels
)");
}

//     gpu  |AAAAAAAAAA|
//          |      BBBBBBBBBB|     in the tail of A
TEST(Ladder, WorkThatOverlapsTheOneInFrontCountsOnce) {
  EXPECT_EQ(ladder(R"(
    cpu: wait:host 4
    gpu: A 10, B 10 {tail=40%}
    wait -> A [measured launch]
  )"),
            R"(
host 16 us, kernels
overlap 16 us, kernels
all 16 us, kernels
)");
}

TEST(Path, IsWhatTheEndWaitedFor) {
  EXPECT_EQ(path(kLaunchBound), "kernels 5 us, host work 8 us, launches 12 us");
}

TEST(Path, BetweenTheBeginsOfSteadySteps) {
  EXPECT_EQ(path(R"(
    @step one
    @step two
    @step three
    cpu: L:launch 2 {step=0}, M:launch 2 {step=1}, N:launch 2 {step=2}, end:host 90 {step=2}
    gpu: A 10 {step=0}, B 10 {step=1}, C 90 {step=2}
    L -> A [measured launch]
    M -> B [measured launch]
    N -> C [measured launch]
)"),
            "kernels 10 us, launches 1 us");
}

std::optional<double> speed_needed(const Graph& graph, const WorkGroup& group, Nanoseconds target) {
  return speed_ups_of(graph, {group}, 100us, target).front().needed;
}

TEST(SpeedNeeded, EqualsTheClosedForm) {
  // 20 + 80 f <= target
  const Graph graph = parse_graph(R"(
    cpu: h:host 18, L:launch 2
    gpu: A 40, B 40
    L -> A [measured launch]
)");
  const WorkGroup kernels = group_named(graph, "kernels");
  for (const int target : {30, 40, 60, 80, 99}) {
    SCOPED_TRACE(target);
    const auto needed = speed_needed(graph, kernels, Nanoseconds(target * 1000));
    ASSERT_TRUE(needed.has_value());
    EXPECT_NEAR(*needed, 80.0 / (target - 20), 0.001 * 80.0 / (target - 20));
  }
  EXPECT_EQ(speed_needed(graph, kernels, 19us), std::nullopt);
  EXPECT_EQ(speed_needed(graph, kernels, 100us), 1.0);
  EXPECT_EQ(speed_needed(graph, kernels, 20us), 0.0);  // Only if kernels take no time.
  EXPECT_NEAR(*speed_needed(graph, group_named(graph, "kernels.A"), 80us), 2, 0.002);
}

TEST(SpeedUp, EndsWhereThePathMoves) {
  // The host takes 30 of 60: making kernels more than twice as fast gains nothing.
  const Graph graph = parse_graph(R"(
    cpu: h:host 30
    gpu: A 60
)");
  const std::vector<SpeedUp> found = speed_ups_of(graph, {group_named(graph, "kernels")}, 60us, {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].at_best, 30us);
  EXPECT_EQ(found[0].bound_by, PathPart::host);
  EXPECT_NEAR(found[0].enough, 2, 0.1);
  EXPECT_EQ(found[0].work, 60us);
}

TEST(WorkGroup, TransfersAreWhatTheQuickestOfAKindTakes) {
  const Graph graph = parse_graph(R"(
    nccl: a=reduce:collective 10 {bytes=1MB}, b=reduce:collective 30 {bytes=1MB}, c=reduce:collective 5 {bytes=2MB}
)");
  const WorkGroup link = group_named(graph, "link.bandwidth");
  EXPECT_EQ(work_of(graph, link), 25us);
  EXPECT_EQ(step_with(graph, link, 0), 20us);  // The second member still waits for the late one.
  EXPECT_EQ(step_with(graph, link, 1), 45us);
}

TEST(WorkGroup, SaysWhatThereIs) {
  const Graph graph = parse_graph("gpu: A 5");
  const auto refused = [&](std::string_view name) -> std::string {
    try {
      group_named(graph, name);
    } catch (const Error& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_EQ(refused("link.bandwith"),
            "there is no \"link.bandwith\" to make faster; there are kernels, kernels.NAME, "
            "host.work, launch.overhead, input.time, copy.bandwidth, link.bandwidth, syncs, and "
            "settings with their values such as loader.workers=1..32 (did you mean "
            "\"link.bandwidth\"?)");
  EXPECT_EQ(refused("kernels.conv"), "no kernel has \"conv\" in its name or module");
  EXPECT_FALSE(group_named(graph, "syncs").has_work);
}

/// Random threads, streams and a network, with tasks of all kinds.
Graph random_job(std::mt19937& random) {
  constexpr TaskKind kHost[] = {TaskKind::host, TaskKind::launch, TaskKind::sync, TaskKind::input};
  constexpr TaskKind kDevice[] = {TaskKind::kernel, TaskKind::copy_in, TaskKind::collective,
                                  TaskKind::kernel};
  Graph graph = random_graph(random);
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i)
    graph.lane(LaneId{i}).kind = i < 2 ? LaneKind::host_thread : LaneKind::stream;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const bool host = index(graph.lane_of(TaskId{i})) < 2;
    graph.task(TaskId{i}).kind = (host ? kHost : kDevice)[random() % 4];
  }
  graph.change_dependencies([&](Dependency& wait) {
    if (graph.task(wait.before).kind == TaskKind::launch) wait.why = Rule::launch;
  });
  return graph;
}

//     cpu  |<------- load ------->L<- log ->|
//     gpu  |                      |KKKKKKKKKKKKKKK|   the only step: 36 us, 30 of them the host's
TEST(Ladder, CountsWhatTheHostDidBeforeTheDeviceBegan) {
  EXPECT_NE(ladder(R"(
    @step 0
    cpu: load:host 20 {step=0}, L:launch 1 {step=0}, log:host 9 {step=0}
    gpu: K 15 {step=0}
    L -> K [measured launch]
)")
                .find("overlap 30 us, host work"),
            std::string::npos);
}

// All three steps count, the first one included: 8, 2 and 2 us of kernels in steps of 18, 4 and
// 10 us, which is 3.75 us of a median step.
TEST(Ladder, CountsTheSameStepsAsTheStepTime) {
  EXPECT_NE(ladder(R"(
    @step 0
    @step 1
    @step 2
    cpu: K:launch 10 {step=0}, L:launch 10 {step=1}, M:launch 10 {step=2}
    gpu: A 8 {step=0}, B 2 {step=1}, C 2 {step=2}
    K -> A [measured launch]
    L -> B [measured launch]
    M -> C [measured launch]
)")
                .find("all 3.75 us, kernels"),
            std::string::npos);
}

TEST(Ladder, NoRungIsAboveNowNorBelowAll) {
  std::mt19937 random(11);
  for (int run = 0; run < 300; ++run) {
    SCOPED_TRACE(run);
    const Graph graph = random_job(random);
    const Nanoseconds now = time_of(graph);
    const std::vector<AdviceCeiling> ceilings = ladder_of(graph, now);
    for (const AdviceCeiling& ceiling : ceilings) {
      EXPECT_LE(ceiling.step_time, now) << ceiling.name;
      EXPECT_GE(ceiling.step_time, ceilings.back().step_time) << ceiling.name;
    }
  }
}

TEST(RetimedReplay, FindsWhatAnEditedCloneDoes) {
  std::mt19937 random(13);
  for (int run = 0; run < 200; ++run) {
    SCOPED_TRACE(run);
    const Graph graph = random_job(random);
    const Nanoseconds now = time_of(graph);
    RetimedReplay retimed(graph);
    RetimedReplay clone = retimed.clone();
    for (const WorkGroup& group : all_groups(graph)) {
      if (!group.graded()) continue;
      SCOPED_TRACE(group.name);
      for (const double factor : {0.5, 0.1}) {
        const Nanoseconds edited = step_with(graph, group, factor);
        EXPECT_EQ(retimed.step_time(retiming_of(graph, group, factor)), edited) << factor;
        EXPECT_EQ(clone.step_time(retiming_of(graph, group, factor)), edited) << factor;
      }
      EXPECT_EQ(retimed.step_time({}), now);
    }
  }
}

TEST(Ladder, PullingFurtherNeverMakesItLater) {
  std::mt19937 random(12);
  for (int run = 0; run < 200; ++run) {
    SCOPED_TRACE(run);
    const Graph graph = random_job(random);
    const Nanoseconds now = time_of(graph);
    for (const WorkGroup& group : ladder_groups(graph)) {
      SCOPED_TRACE(group.name);
      const Nanoseconds half = step_with(graph, group, 0.5);
      EXPECT_EQ(step_with(graph, group, 1), now);
      EXPECT_LE(half, now);
      EXPECT_LE(step_with(graph, group, 0), half);
    }
  }
}

}  // namespace
}  // namespace foretrace
