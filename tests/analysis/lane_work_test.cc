#include <gtest/gtest.h>

#include "analysis/match/step_work.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

// Four steps of 4 us, each followed by a collective that nothing waits for.
std::string steps(const std::string& collective) {
  std::string graph = "@step a\n@step b\n@step c\n@step d\n";
  std::string stream = "stream: ", link = "comm [priority=0]: ", waits;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    stream += (i > 0 ? ", k" : "k") + number + ":kernel 4 {step=" + number + "}";
    link += (i > 0 ? ", x" : "x") + number + ":collective " + collective + " {step=" + number + "}";
    waits += "k" + number + " -> x" + number + "\n";
  }
  return graph + stream + "\n" + link + "\n" + waits;
}

Notes notes_of(const std::string& graph_text) {
  const Graph graph = parse_graph(graph_text);
  Notes notes;
  note_overfull_lanes(graph, simulate(graph), notes);
  return notes;
}

TEST(LaneWork, WhatFitsIntoItsStepsIsFine) { EXPECT_TRUE(notes_of(steps("4")).all().empty()); }

TEST(LaneWork, MoreThanStepsAreLongIsAWarning) {
  const Notes notes = notes_of(steps("9"));
  ASSERT_EQ(notes.all().size(), 1U);
  EXPECT_EQ(notes.all()[0].severity, Severity::warning);
  EXPECT_EQ(notes.all()[0].example, "\"comm\": 18 us in 8 us");
}

}  // namespace
}  // namespace foretrace
