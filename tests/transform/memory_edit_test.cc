#include "transform/memory/memory_edit.h"

#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

constexpr auto kTwoLayers = R"(
    cpu:    LA:launch 1, LB:launch 1, Lb:launch 1 {phase=backward}
    stream: A 2 {phase=forward}, B 2 {phase=forward}, b 2 {phase=backward}
    LA -> A
    LB -> B
    Lb -> b
    @alloc 4MB use=activation made=0 freed=1: LA .. Lb writes A reads B, b
    @alloc 1MB use=temporary: LB .. LB writes B reads B
)";

TEST(MemoryEdit, AnActivationIsUsedInFrontOfAndInTheBackwardPass) {
  const Graph graph = parse_graph(kTwoLayers);
  const BlockUses uses(graph, simulate(graph).start);
  const std::vector<Activation> found = find_activations(graph, uses, {0, 1});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].allocation, 0U);
  EXPECT_EQ(graph.name(found[0].last_forward), "B");
  EXPECT_EQ(graph.name(found[0].first_backward), "b");
}

TEST(MemoryEdit, ALifetimeCutInTwoLeavesItsUsesToTheRightHalf) {
  Graph graph = parse_graph(kTwoLayers);
  const std::vector<Nanoseconds> starts = simulate(graph).start;
  const Launches launches(graph);
  const Activation cut = find_activations(graph, BlockUses(graph, starts), {0}).front();
  const TaskId freed = allocating_task(graph, launches, graph.allocations()[0], cut.last_forward);
  const TaskId made = allocating_task(graph, launches, graph.allocations()[0], cut.first_backward);
  EXPECT_EQ(graph.name(freed), "LB");
  EXPECT_EQ(graph.name(made), "Lb");
  const std::vector<std::uint32_t> second = split_lifetimes(graph,
                                                            {{.allocation = 0,
                                                              .first_behind = cut.first_backward,
                                                              .freed = end_of(graph, freed),
                                                              .made = start_of(made)}},
                                                            starts);
  ASSERT_EQ(second, std::vector<std::uint32_t>{2});
  const BlockUses uses(graph, starts);
  EXPECT_EQ(uses.of_block(0).size(), 2U);
  ASSERT_EQ(uses.of_block(2).size(), 1U);
  EXPECT_EQ(graph.name(uses.of_block(2)[0].task), "b");
  EXPECT_EQ(graph.allocations()[0].freed_after, 1us);
  EXPECT_EQ(graph.allocations()[2].bytes, Bytes{4'000'000});
}

TEST(MemoryEdit, EachCutOfALifetimeEndsThePartInFrontOfIt) {
  Graph graph = parse_graph(R"(
    stream: A 1, B 1, C 1, D 1
    @alloc 4MB: A .. D writes A reads B, C, D
  )");
  const std::vector<Nanoseconds> starts = simulate(graph).start;
  const auto cut_at = [](std::uint32_t task) {
    return LifetimeCut{.allocation = 0,
                       .first_behind = TaskId{task},
                       .freed = start_of(TaskId{task - 1}),
                       .made = start_of(TaskId{task})};
  };
  // The cuts need not be in order.
  EXPECT_EQ(split_lifetimes(graph, {cut_at(3), cut_at(1)}, starts),
            (std::vector<std::uint32_t>{2, 1}));
  const std::vector<Allocation>& parts = graph.allocations();
  std::string text;
  for (const Allocation& part : parts) {
    text += std::string(graph.name(part.made_by)) + ".." + std::string(graph.name(part.freed_by));
    text += ' ';
  }
  EXPECT_EQ(text, "A..A B..C D..D ");
  const BlockUses uses(graph, starts);
  EXPECT_EQ(uses.of_block(0).size(), 1U);
  EXPECT_EQ(uses.of_block(1).size(), 2U);
  EXPECT_EQ(uses.of_block(2).size(), 1U);
}

TEST(MemoryEdit, WhereTheDeviceMakesABlockItAlsoFreesIt) {
  const Graph graph = parse_graph(R"(
    cpu:    LA:launch 1
    stream: A 2
    LA -> A
    @alloc 4MB: A ..
  )");
  const Launches launches(graph);
  const TaskId kernel = graph.allocations()[0].made_by;
  EXPECT_EQ(allocating_task(graph, launches, graph.allocations()[0], kernel), kernel);
}

TEST(MemoryEdit, ExtraWorkIsLaunchedBesideTheLaunchOfWhatItStandsBeside) {
  Graph graph = parse_graph(kTwoLayers);
  const Launches launches(graph);
  const TaskId beside = graph.last(LaneId{1});
  const InsertedWork work =
      insert_work(graph, launches,
                  {.task = {.duration = 1us, .name = graph.names().intern("x")},
                   .beside = beside,
                   .launch_duration = 3us});
  EXPECT_EQ(graph.next(work.task), beside);
  EXPECT_EQ(graph.name(graph.next(work.launch)), "Lb");
  EXPECT_EQ(graph.task(work.launch).duration, 3us);
}

TEST(MemoryEdit, SaysWhyThereIsNoActivation) {
  const auto why = [](std::string_view text) -> std::string {
    const Graph graph = parse_graph(text);
    try {
      no_activation(graph, {0});
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(why("s: A 1, B 1\n@alloc 1MB: A .. B\n"),
            "this trace does not show which tasks use the 1 allocation of \"where\"");
  EXPECT_EQ(why("s: A 1, B 1\n@alloc 1MB: A .. B reads B\n"),
            "this trace shows no task of a backward pass that uses memory");
  EXPECT_EQ(why("s: A 1, B 1 {phase=backward}\n@alloc 1MB: A .. B reads B\n"),
            "none of the 1 allocation of \"where\" is made, used forward and then used in the "
            "backward pass");
}

}  // namespace
}  // namespace foretrace
