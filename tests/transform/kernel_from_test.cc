#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/simulated.h"
#include "transform/edit/align.h"

namespace foretrace {
namespace {

/// The picture of `own` with the times of `other`, or the Error.
std::string with_times_of(std::string_view own, std::string_view other,
                          std::string_view settings = "kernel_from") {
  try {
    Graph graph = parse_graph(own);
    const Graph donor = parse_graph(other);
    read_transform_text(settings)->apply(graph, {.donor = &donor});
    return "\n" + to_ascii(graph, simulate(graph));
  } catch (const Error& error) {
    return error.what();
  }
}

constexpr auto kOwn = R"(
    cpu:    L:launch 1, M:launch 1, N:launch 1
    stream: a 3, "g sgemm" 6, r 2
    L -> a
    M -> "g sgemm"
    N -> r
)";

TEST(KernelFrom, TheSameNamesInTheSameOrder) {
  EXPECT_EQ(with_times_of(kOwn, "stream: a 1, \"g sgemm\" 4, r 1"), R"(
cpu    |LMN....|
stream |.aggggr|
)");
}

TEST(KernelFrom, WhatStandsInTheSamePlaceAndIsOfOneKind) {
  EXPECT_EQ(with_times_of(kOwn, "stream: a 3, \"h hgemm\" 2, r 2"), R"(
cpu    |LMN.....|
stream |.aaaggrr|
)");
}

TEST(KernelFrom, SeveralThatStandWhereOneDoesTakeTheSum) {
  EXPECT_EQ(with_times_of(kOwn, "stream: a 3, \"q nccl\" 1, \"s nccl\" 1, r 2"), R"(
cpu    |LMN.....|
stream |.aaaggrr|
)");
}

TEST(KernelFrom, WhatOnlyOneOfThemHas) {
  EXPECT_EQ(with_times_of(kOwn, "stream: a 3, r 2, t 1"), R"(
cpu    |LN.....|
stream |.aaarrt|
)");
  EXPECT_EQ(with_times_of(kOwn, "stream: a 3, r 2, t 1", "kernel_from:whole=false"), R"(
cpu    |LMN.........|
stream |.aaaggggggrr|
)");
}

TEST(KernelFrom, EachTimeIsTheMiddleOfTheSteps) {
  constexpr auto kSteps = R"(
    @step one
    @step two
    @step three
    stream: a 9 {step=0}, b 1 {step=0}, A = a 2 {step=1}, B = b 1 {step=1}, C = a 3 {step=2}, D = b 1 {step=2}
  )";
  EXPECT_EQ(with_times_of("@step one\nstream: a 5 {step=0}, b 5 {step=0}", kSteps), R"(
stream |aaab|
)");
}

// Every second step also updates.
constexpr auto kTwoKinds = R"(
    @step one
    @step two
    @step three
    @step four
    @step five
    @step six
    stream: a 1 {step=0}, A = a 1 {step=1}, u 4 {step=1}, B = a 1 {step=2}, C = a 1 {step=3}, U = u 4 {step=3}, D = a 1 {step=4}, E = a 1 {step=5}, V = u 4 {step=5}
)";

std::vector<std::string> doubts_of(std::string_view own, std::string_view other) {
  Graph graph = parse_graph(own);
  const Graph donor = parse_graph(other);
  return read_transform_text("kernel_from")->apply(graph, {.donor = &donor}).doubts;
}

TEST(KernelFrom, AStepTakesTheTimesOfTheKindThatIsLikeIt) {
  constexpr auto kOwnKinds = R"(
    @step one
    @step two
    @step three
    @step four
    stream: a 3 {step=0}, u 2 {step=0}, A = a 3 {step=1}, B = a 3 {step=2}, U = u 2 {step=2}, C = a 3 {step=3}
  )";
  EXPECT_EQ(with_times_of(kOwnKinds, kTwoKinds), R"(
stream |auuuuaauuuua|
)");
  EXPECT_EQ(doubts_of(kOwnKinds, kTwoKinds), std::vector<std::string>());
}

TEST(KernelFrom, DoubtsThatKindsOfStepsCorrespondIfTheirNumbersDiffer) {
  constexpr auto kOneKind = R"(
    @step one
    @step two
    stream: a 3 {step=0}, u 2 {step=0}, A = a 3 {step=1}, U = u 2 {step=1}
  )";
  const std::vector<std::string> doubts = doubts_of(kOneKind, kTwoKinds);
  ASSERT_EQ(doubts.size(), 1U);
  EXPECT_EQ(doubts[0], "1 kind of steps here and 2 kinds in the other trace do not correspond");
  EXPECT_EQ(doubts_of(kTwoKinds, kOneKind).at(0),
            "2 kinds of steps here and 1 kind in the other trace do not correspond");
}

// In the other trace the device waits for 5 us between two graphs.
TEST(KernelFrom, DoubtsAStepThatWaitsMoreInTheOtherTrace) {
  constexpr auto kWaits = R"(
    cpu:    L:launch 1, h:host 10, M:launch 1
    stream: a 5, r 4
    L -> a
    M -> r
  )";
  constexpr auto kRuns = R"(
    cpu:    L:launch 1, M:launch 1
    stream: a 6, r 6
    L -> a
    M -> r
  )";
  EXPECT_EQ(doubts_of(kRuns, kWaits).at(0),
            "in the other trace the device waits for 43.8 % of a step, here then for 10.0 %: only "
            "kernels are taken over, not what launches them");
  EXPECT_EQ(doubts_of(kWaits, kRuns).size(), 1U);
  EXPECT_EQ(doubts_of(kRuns, kRuns).size(), 0U);
}

TEST(KernelFrom, WithoutStepsToLayBesideTheMiddleByName) {
  EXPECT_EQ(with_times_of("@step one\nstream: a 5 {step=0}, c 2 {step=0}",
                          "stream: a 1, A = a 1, B = b 3, C = a 2"),
            R"(
stream |acc|
)");
}

TEST(KernelFrom, SaysHowItMatched) {
  Graph graph = parse_graph(kOwn);
  const Graph donor = parse_graph("stream: a 1, \"h hgemm\" 2, r 2, t 1");
  EXPECT_EQ(read_transform_text("kernel_from")->apply(graph, {.donor = &donor}).summary,
            "3 kernels from 11 us to 5 us in all: 2 by name, 1 by kind of work, 0 by place, 1 "
            "added");
}

TEST(KernelFrom, SaysWhatIsWrong) {
  EXPECT_EQ(simulated(kOwn, R"({"use": "kernel_from"})"),
            "trace: must be the path of another trace of the same job");
  EXPECT_EQ(with_times_of(kOwn, "cpu: a:host 1"), "trace: the other trace has no kernels");
  EXPECT_EQ(with_times_of("stream: \"g gemm\" 1", "stream: a 1", "kernel_from:whole=true"),
            "trace: no kernel of the other trace corresponds to one of \"where\" (kind kernel)");
  EXPECT_EQ(with_times_of("stream: i:copy_in 1", "stream: a 1", "kernel_from:where.kind=copy_in"),
            "where: must select kernels only, got kind copy_in");
}

TEST(Align, IsTheShortestListOfDifferences) {
  const std::uint64_t own[] = {1, 2, 3, 4, 5};
  const std::uint64_t other[] = {2, 3, 9, 9, 5, 6};
  std::string text;
  for (const AlignedRun& run : aligned_runs(own, other)) {
    text += run.equal ? "=" : "!";
    text += std::to_string(run.end - run.begin) + "/" +
            std::to_string(run.other_end - run.other_begin) + " ";
  }
  EXPECT_EQ(text, "!1/0 =2/2 !1/2 =1/1 !0/1 ");
  EXPECT_EQ(aligned_runs(own, other, 1).size(), 1U);
  EXPECT_TRUE(aligned_runs({}, {}).empty());
  EXPECT_EQ(aligned_runs(own, {}).at(0).end, 5U);
}

}  // namespace
}  // namespace foretrace
