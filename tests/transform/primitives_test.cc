// Scale, set_duration, insert, remove and move: their effects on a graph, as pictures.

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kTwoKernels = R"(
    cpu:    L:launch 1, M:launch 1
    stream: A 4, B 2
    L -> A
    M -> B
)";

TEST(Scale, Baseline) {
  EXPECT_EQ(simulated(kTwoKernels), R"(
cpu    |LM.....|
stream |.AAAABB|
)");
}

TEST(Scale, MultipliesThenAdds) {
  EXPECT_EQ(
      simulated(kTwoKernels,
                R"({"use": "scale", "where": {"kind": "kernel"}, "factor": 0.5, "by": "1us"})"),
      R"(
cpu    |LM....|
stream |.AAABB|
)");
}

TEST(Scale, StopsAtNoTime) {
  EXPECT_EQ(simulated(kTwoKernels, R"({"use": "scale", "where": {"name": "B"}, "by": "-5us"})"), R"(
cpu    |LM...|
stream |.AAAA|
)");
}

TEST(SetDuration, GivesEachTheSame) {
  EXPECT_EQ(simulated(kTwoKernels,
                      R"({"use": "set_duration", "where": {"kind": "kernel"}, "duration": "3us"})"),
            R"(
cpu    |LM.....|
stream |.AAABBB|
)");
}

TEST(Insert, BehindEachOnTheSameLane) {
  EXPECT_EQ(
      simulated(
          kTwoKernels,
          R"({"use": "insert", "where": {"kind": "kernel"}, "name": "x", "duration": "1us"})"),
      R"(
cpu    |LM.......|
stream |.AAAAxBBx|
)");
}

TEST(Insert, BeforeWithALaunchOfItsOwn) {
  EXPECT_EQ(simulated(kTwoKernels,
                      R"({"use": "insert", "where": {"name": "B"}, "place": "before", "name": "x",
                                       "duration": "1us", "launch": "2us"})"),
            R"(
cpu    |LllM....|
stream |.AAAAxBB|
)");
}

TEST(Insert, OnALaneOfItsOwnItRunsBeside) {
  EXPECT_EQ(
      simulated(kTwoKernels,
                R"({"use": "insert", "where": {"kind": "kernel"}, "name": "x", "duration": "3us",
                                       "lane": "side"})"),
      R"(
cpu    |LM.........|
stream |.AAAABB....|
side   |.....xxxxxx|
)");
}

TEST(Insert, OncePerStepStandsAtTheEdgeOfTheStep) {
  constexpr auto kTwoMarks = R"(
      @step one
      @step two
      stream: A 2 {step=0}, B 2 {step=0}, C 2 {step=1}, D 2 {step=1}
  )";
  EXPECT_EQ(
      simulated(kTwoMarks, R"({"use": "insert", "per": "step", "name": "x", "duration": "1us"})"),
      R"(
stream |AABBxCCDDx|
)");
  EXPECT_EQ(
      simulated(
          kTwoMarks,
          R"({"use": "insert", "per": "step", "place": "before", "name": "x", "duration": "1us"})"),
      R"(
stream |xAABBxCCDD|
)");
}

TEST(Remove, LetsWaitsThrough) {
  EXPECT_EQ(simulated(kTwoKernels, R"({"use": "remove", "where": {"name": "A"}})"), R"(
cpu    |LM..|
stream |..BB|
)");
}

TEST(Remove, TakesTheLaunchesToo) {
  EXPECT_EQ(
      simulated(kTwoKernels, R"({"use": "remove", "where": {"name": "A"}, "launches": true})"), R"(
cpu    |M..|
stream |.BB|
)");
}

TEST(Remove, KeepsALaunchThatHasOtherWork) {
  EXPECT_EQ(simulated(R"(
      cpu:    G:launch 2
      stream: A 2, B 2
      G -> A
      G -> B
  )",
                      R"({"use": "remove", "where": {"name": "A"}, "launches": true})"),
            R"(
cpu    |GG..|
stream |..BB|
)");
}

constexpr auto kCopyInBetween = R"(
    stream: A 4, c:copy_in 3, B 4
)";

TEST(Move, KeepsTheOrderUnlessToldOtherwise) {
  EXPECT_EQ(
      simulated(kCopyInBetween, R"({"use": "move", "where": {"kind": "copy_in"}, "to": "copies"})"),
      R"(
stream |AAAA...BBBB|
copies |....ccc....|
)");
}

TEST(Move, WithoutFrontRunsAsSoonAsItCan) {
  EXPECT_EQ(
      simulated(kCopyInBetween,
                R"({"use": "move", "where": {"kind": "copy_in"}, "to": "copies", "front": false})"),
      R"(
stream |AAAABBBB|
copies |ccc.....|
)");
}

TEST(Move, WithoutBehindNobodyWaitsForIt) {
  EXPECT_EQ(
      simulated(
          kCopyInBetween,
          R"({"use": "move", "where": {"kind": "copy_in"}, "to": "copies", "behind": false})"),
      R"(
stream |AAAABBBB|
copies |....ccc.|
)");
}

TEST(Move, ToAnExistingLaneGoesToItsEnd) {
  EXPECT_EQ(simulated("a: A 2, X 2\nb: B 5",
                      R"({"use": "move", "where": {"name": "X"}, "to": "b", "front": false})"),
            R"(
a |AA.....|
b |BBBBBXX|
)");
}

TEST(Primitives, SayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "scale", "factor": -1})", "factor: must be at least 0, got -1"},
      {R"({"use": "scale", "by": 5})", "by: must be a string with a unit, such as \"5us\", got 5"},
      {R"({"use": "scale", "by": "5000h"})", "by: must be at most 1000h, got 5000h"},
      {R"({"use": "scale", "where": {"name": "/(/"}})",
       "where: name: must be a regular expression, got /(/: a ( without its )"},
      {R"({"use": "scale", "where": {"name": "Z"}})", "no task matches \"where\" (name \"Z\")"},
      {R"({"use": "move"})", "to: must be the name of a lane"},
      {R"({"use": "insert", "place": "after"})",
       "place: must be one of before, behind, got \"after\""},
      {R"({"use": "scales"})",
       "there is no transform \"scales\" (did you mean \"scale\"?); `foretrace list transforms` "
       "shows all"},
      {R"({"factor": 2})", "use: must be given, such as {\"use\": \"amp\"}"},
      {R"([])", "must be an object such as {\"use\": \"amp\"}"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kTwoKernels, transform), message) << transform;
  }
}

}  // namespace
}  // namespace foretrace
