#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "support/yardstick.h"

namespace foretrace {
namespace {

TEST(Compiled, KeepsTheOrderOfTasksThatStandInOne) {
  const Compiled compiled(parse_graph("x: A 1, B 2\ny: C 3\nA -> C"));
  EXPECT_EQ(std::vector(compiled.order().begin(), compiled.order().end()),
            (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(Compiled, RenumbersTasksThatDoNot) {
  Compiled compiled(parse_graph("x: A 1, B 2\ny: C 3\nC -> A"));
  EXPECT_EQ(std::vector(compiled.order().begin(), compiled.order().end()),
            (std::vector<std::uint32_t>{1, 2, 0}));
  EXPECT_EQ(compiled.replay(), 6us);
  compiled.durations()[0] = 10us;
  EXPECT_EQ(compiled.replay(), 13us);
}

TEST(Compiled, OfNothingTakesNoTime) {
  Compiled compiled{Graph()};
  EXPECT_EQ(compiled.replay(), 0ns);
  EXPECT_TRUE(compiled.replay_all({}).lengths.empty());
}

TEST(Compiled, SaysWhatItCannotDo) {
  const auto error_of = [](std::string_view text) -> std::string {
    try {
      const Compiled compiled(parse_graph(text));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of("x: A 1\nlink [shared=1GB/s]:"), "no error");
  EXPECT_EQ(error_of("link [shared=1GB/s]: A 1"),
            "all lanes must run their tasks in order, but \"link\" does not");
  EXPECT_EQ(error_of("x: A 1\nA -> A"),
            "tasks wait for each other in a cycle of 1: \"A\" on x -> \"A\" on x (structural)");
}

// Five independent engines agree on this number.
TEST(Compiled, TakesAsLongAsOtherEnginesSay) {
  constexpr Nanoseconds kKnown{20'342'622};
  const Graph graph = yardstick::make_graph(100'000);
  Compiled compiled(graph);
  EXPECT_EQ(compiled.replay(), kKnown);
  EXPECT_EQ(simulate(graph).length, kKnown);
  EXPECT_LE(compiled.bytes(), 64 * graph.task_count());
  EXPECT_EQ(simulate(yardstick::make_graph(100'000, Discipline::priority)).length, kKnown);
}

}  // namespace
}  // namespace foretrace
