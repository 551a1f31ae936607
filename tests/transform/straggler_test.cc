// Time that a rank needs beyond the others, found task by task or, where ranks do not do the same,
// name by name.

#include <array>

#include "support/simulated.h"

namespace foretrace {
namespace {

struct Removed {
  Graph graph;
  Effect effect;
};

Removed without_straggler(const char* straggler, const char* other) {
  Graph graph = parse_graph(straggler);
  const Graph peer = parse_graph(other);
  const std::array<const Graph*, 2> others = {&peer, &peer};
  Effect effect =
      read_transform_text("straggler:remove=true")->apply(graph, {.other_ranks = others});
  return {std::move(graph), std::move(effect)};
}

TEST(Straggler, TakesTheTimesOfRanksThatDoTheSame) {
  const Removed found = without_straggler("cpu: load:host 1000, prepare:host 50, step:host 100",
                                          "cpu: load:host 200, prepare:host 60, step:host 100");
  EXPECT_EQ(figure(found.effect, "excess"), 790'000);
  EXPECT_EQ(found.graph.task(TaskId{0}).duration, 200us);
}

// Half of its work is of another kind, as where another part of a table is looked up.
TEST(Straggler, ComparesNamesWhereRanksDoNotDoTheSame) {
  const Removed found = without_straggler(
      "cpu: load:host 600, x:host 5, y:host 5, z:host 5, load:host 400, step:host 100",
      "cpu: a:host 5, load:host 200, b:host 5, step:host 90, c:host 5");
  EXPECT_EQ(found.graph.task(TaskId{0}).duration, 120us);
  EXPECT_EQ(found.graph.task(TaskId{4}).duration, 80us);
  EXPECT_EQ(found.graph.task(TaskId{5}).duration, 100us) << "no more than noise";
  EXPECT_EQ(found.graph.task(TaskId{1}).duration, 5us) << "the others have nothing to compare";
  EXPECT_EQ(figure(found.effect, "excess"), 800'000);
}

}  // namespace
}  // namespace foretrace
