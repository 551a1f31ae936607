#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/memory.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

MemoryReport pooled(std::string_view text, const MemoryQuestion& question = {}) {
  const Graph graph = parse_graph(text);
  return describe_memory(graph, simulate(graph), question);
}

// In order of allocation, a and b are at 0 and 2; c, of 4, does not fit into the 2 that a leaves: 9
// in all.
constexpr std::string_view kPoolStep = R"(
@step ProfilerStep#7
cpu: A 1 {step=0}, B 1 {step=0}, C 1 {step=0}, D 1 {step=0}
@alloc 2B use=activation: A .. C
@alloc 3B use=activation: B .. D
@alloc 4B use=activation: C .. D
)";

TEST(MemoryPool, PlacesPlannedAheadTakeNoMoreThanTheLoad) {
  const MemoryReport report = pooled(kPoolStep);
  EXPECT_EQ(report.pool.step, "ProfilerStep#7");
  EXPECT_EQ(report.pool.blocks, 3);
  EXPECT_EQ(report.pool.by_load, 0);
  EXPECT_EQ(report.pool.load, report.peak);
  EXPECT_EQ(report.pool.footprint, report.peak);
  EXPECT_DOUBLE_EQ(to_json(report)["pool"]["ratio"].get<double>(), 1);
  EXPECT_TRUE(to_json(report)["pool"]["allocator_ratio"].is_null());
}

TEST(MemoryPool, IsOfTheStepWithThePeak) {
  const MemoryReport report = pooled(R"(
@step ProfilerStep#1
@step ProfilerStep#2
cpu: A 1 {step=0}, B 1 {step=0}, C 1 {step=1}, D 1 {step=1}
@alloc 2B: A .. B
@alloc 5B: C .. D
@alloc 1B: A .. D
@alloc 100B: ..
)");
  EXPECT_EQ(report.pool.step, "ProfilerStep#2");
  EXPECT_EQ(report.pool.blocks, 3);
  EXPECT_EQ(report.pool.load.count, 106);
  EXPECT_EQ(report.pool.footprint.count, 106);
}

TEST(MemoryPool, WhatIsMadeAndFreedInOneInstantHasItsPlace) {
  const MemoryReport report = pooled(R"(
cpu: A 0, B 0, C 0
@alloc 8B: A .. B
@alloc 8B: B .. C
)");
  EXPECT_EQ(report.pool.load, report.peak);
  EXPECT_GE(report.pool.footprint, report.pool.load);
}

TEST(MemoryPool, IsSaidInOneLine) {
  std::ostringstream text;
  write_text(document_of(pooled(kPoolStep)), text);
  EXPECT_NE(text.str().find("1.0000 times their peak load"), std::string::npos) << text.str();
}

}  // namespace
}  // namespace foretrace
