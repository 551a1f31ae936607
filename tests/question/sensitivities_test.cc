#include "question/predict/sensitivities.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// The sensitivity with this name; an unnamed one if there is none.
Sensitivity sensitivity(std::string_view graph_text, std::string_view name) {
  const Graph graph = parse_graph(graph_text);
  const std::vector<Sensitivity> all =
      sensitivities_of(graph, step_times(graph, simulate(graph)).step_time);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Sensitivity& one) { return one.name == name; });
  return found == all.end() ? Sensitivity{} : *found;
}

// Two kernels of 100 us after launches of 10 us.
constexpr std::string_view kDeviceBound = R"(
cpu:    a:launch 10, b:launch 10
stream: K 100, L 100
a -> K
b -> L
)";

TEST(Sensitivities, WhatStepsWaitForMovesTheStepTime) {
  const Sensitivity kernels = sensitivity(kDeviceBound, "kernels");
  EXPECT_EQ(kernels.step_time, 210us);
  EXPECT_EQ(kernels.by_tenth, 190us);
  EXPECT_EQ(kernels.by_half, 110us);
  EXPECT_EQ(kernels.work, 200us);
}

TEST(Sensitivities, WorkBehindOtherWorkMovesNearlyNothing) {
  const Sensitivity host = sensitivity(kDeviceBound, "host.work");
  EXPECT_EQ(host.by_tenth, 209us);
  EXPECT_EQ(host.by_half, 205us);
}

TEST(Sensitivities, WhatThereIsNoneOfIsNotAsked) {
  EXPECT_EQ(sensitivity(kDeviceBound, "link.bandwidth").name, "");
}

}  // namespace
}  // namespace foretrace
