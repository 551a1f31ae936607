#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "foretrace/timeline.h"

namespace foretrace {
namespace {

InputStalls stalls_of(std::string_view text) {
  const Graph graph = parse_graph(text);
  return input_stalls(graph, simulate(graph));
}

TEST(Stalls, OnlyAnIdleDeviceStalls) {
  const InputStalls stalls = stalls_of(R"(
    cpu: load:input 6, L:launch 1, load:input 8
    gpu: K 6
    L -> K
)");
  EXPECT_EQ(stalls.unknown.stall, 6us + 2us);
  EXPECT_EQ(stalls.unknown.hidden, 6us);
  EXPECT_EQ(stalls.batches, 2);
}

TEST(Stalls, KernelsThatOverlapHideOnce) {
  const InputStalls stalls = stalls_of(R"(
    cpu: load:input 10
    gpu: A 6
    two: m:marker 0, B 5 {gap=3}
)");
  EXPECT_EQ(stalls.unknown.hidden, 8us);
  EXPECT_EQ(stalls.unknown.stall, 2us);
}

TEST(Stalls, ThreadsThatLoadTogetherStallOnce) {
  const InputStalls stalls = stalls_of(R"(
    cpu: load:input 10
    two: load:input 6
    gpu: A 4
)");
  EXPECT_EQ(stalls.unknown.hidden, 4us);
  EXPECT_EQ(stalls.unknown.stall, 6us);
}

TEST(Stalls, CopiesStallWhereNothingElseRuns) {
  const InputStalls stalls = stalls_of(R"(
    cpu: L:launch 1
    gpu: K 4
    in:  "Pageable -> Device":copy_in 6 {bytes=6kB}
    L -> K
)");
  EXPECT_EQ(stalls.copying.hidden, 4us);
  EXPECT_EQ(stalls.copying.stall, 2us);
  EXPECT_EQ(stalls.pageable, 1);
  EXPECT_EQ(stalls.copied, Bytes{6000});
}

TEST(Stalls, RecordsTellWhatLoadingDoes) {
  const std::pair<const char*, Loading> cases[] = {
      {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Loading::unknown},
      {"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", Loading::waiting},
      {"aten::stack", Loading::preparing},
      {"PIL/Image.py(3206): preinit", Loading::preparing},
      {"<built-in method read of _io.BufferedReader object>", Loading::reading},
      {"torchvision/io/image.py(52): read_file", Loading::reading},
  };
  for (const auto& [name, kind] : cases) EXPECT_EQ(loading_named(name), kind) << name;
}

// Three steps load for 102 of 119 us, so the median step of 12 us does for 10.286 us.
TEST(Stalls, TheTypicalStepHasTheShareOfAll) {
  const InputStalls stalls = stalls_of(R"(
    @step a
    @step b
    @step c
    cpu: x=load:input 90 {step=0}, L:launch 1 {step=0}, S:sync 1 {step=0}, y=load:input 6 {step=1}, M:launch 1 {step=1}, T:sync 1 {step=1}, z=load:input 6 {step=2}, N:launch 1 {step=2}
    gpu: K 4 {step=0}, P 4 {step=1}, Q 4 {step=2}
    L -> K [measured launch]
    M -> P [measured launch]
    N -> Q [measured launch]
    K -> S
    P -> T
)");
  EXPECT_EQ(stalls.steps, 3);
  EXPECT_EQ(stalls.step, 12us);
  EXPECT_EQ(stalls.unknown.stall, 10286ns);
}

}  // namespace
}  // namespace foretrace
