#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// Hand-over 1us and nothing else makes pictures that can be counted.
#define LOADER(more) \
  R"({"use": "loader", "hand_over": "1us", "first_touch": "0B/s", "host_factor": 1)" more "}"

constexpr auto kInline = R"(
    train: a:input 4, A:host 3, b:input 4, B:host 3, c:input 4, C:host 3, d:input 4, D:host 3
)";

TEST(Loader, Baseline) {
  EXPECT_EQ(simulated(kInline), R"(
train |aaaaAAAbbbbBBBccccCCCddddDDD|
)");
}

TEST(Loader, TwoWorkersHideLoading) {
  // Half of the first batch is left when the recording begins, then all of the second.
  EXPECT_EQ(simulated(kInline, LOADER(R"(, "workers": 2)")), R"(
train         |..tAAAtBBBtCCCtDDD|
train+worker0 |aacccc............|
train+worker1 |bbbbdddd..........|
)");
}

TEST(Loader, OneWorkerIsTheBottleneck) {
  EXPECT_EQ(simulated(R"(
    train: a:input 6, A:host 2, b:input 6, B:host 2, c:input 6, C:host 2
)",
                      LOADER(R"(, "workers": 1)")),
            R"(
train         |......tAA...tBB...tCC|
train+worker0 |aaaaaabbbbbbcccccc...|
)");
}

TEST(Loader, WaitsForAFreePlace) {
  // One batch ahead: work on the third starts when the first is taken over... by then it is two
  // behind.
  EXPECT_EQ(simulated(kInline, LOADER(R"(, "workers": 1, "prefetch_factor": 1)")), R"(
train         |....tAAA.tBBB.tCCC.tDDD|
train+worker0 |aaaa.bbbb.cccc.dddd....|
)");
}

TEST(Loader, CoresLimitHowManyWorkAtOnce) {
  EXPECT_EQ(simulated(kInline, LOADER(R"(, "workers": 4, "cores": 1)")),
            simulated(kInline, LOADER(R"(, "workers": 1, "prefetch_factor": 4)")));
}

TEST(Loader, BatchTimeReplacesWhatWasRecorded) {
  EXPECT_EQ(simulated(kInline, LOADER(R"(, "workers": 0, "batch_time": "1us")")), R"(
train |aAAAbBBBcCCCdDDD|
)");
}

TEST(Loader, NoWorkersChangeNothing) {
  EXPECT_EQ(simulated(kInline, LOADER(R"(, "workers": 0)")), simulated(kInline));
}

TEST(Loader, FirstTouchOfTheBatchTakesTime) {
  // 3000 bytes at 1 GB/s.
  EXPECT_EQ(
      simulated(
          R"(
      @step one
      train:  a:input 4 {step=0}, L:launch 1 {step=0}
      stream: i:copy_in 2 {step=0 bytes=3000B}
      L -> i
  )",
          R"({"use": "loader", "workers": 1, "hand_over": "1us", "first_touch": "1GB/s", "host_factor": 1})"),
      R"(
train         |....ttttL..|
stream        |.........ii|
train+worker0 |aaaa.......|
)");
}

TEST(Loader, PinningRunsBesideAndSpeedsCopies) {
  EXPECT_EQ(
      simulated(
          R"(
      @step one
      train:  a:input 4 {step=0}, L:launch 1 {step=0}
      stream: i:copy_in 3 {step=0 bytes=3000B}
      L -> i
  )",
          R"({"use": "loader", "workers": 1, "hand_over": "1us", "first_touch": "1GB/s", "host_factor": 1,
                          "pin_memory": true, "pinned_bandwidth": "3GB/s"})"),
      R"(
train         |.......tL.|
stream        |.........i|
train+worker0 |aaaa......|
train+pin     |....ppp...|
)");
}

TEST(Loader, BusyWorkersSlowTheHost) {
  EXPECT_EQ(
      simulated(
          "train: a:input 4, A:host 4",
          R"({"use": "loader", "workers": 1, "hand_over": "1us", "host_factor": 1.5, "work_factor": 1.25})"),
      R"(
train         |.....tAAAAAA|
train+worker0 |aaaaa.......|
)");
}

TEST(Loader, AsksForTheWorkOfRecordedWorkers) {
  constexpr auto kWithWorkers = R"(
    train: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__":input 1, A:host 3
)";
  EXPECT_EQ(simulated(kWithWorkers, R"({"use": "loader"})"),
            "batch_time: must be given, as the recorded job had workers already and their work is "
            "not in its trace");
  EXPECT_EQ(simulated(kWithWorkers, LOADER(R"(, "workers": 1, "batch_time": "5us")")), R"(
train         |.....tAAA|
train+worker0 |eeeee....|
)");
}

TEST(Loader, SaysWhatItDidAndWhatIsWrong) {
  Graph graph = parse_graph(kInline);
  EXPECT_EQ(read_transform_text("loader:workers=2,hand_over=1us")->apply(graph).summary,
            "4 batches of 4 us loaded by 2 workers; the training thread keeps 1 us for each");
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "loader", "workers": -1})", "workers: must be at least 0, got -1"},
      {R"({"use": "loader", "prefetch_factor": 0})", "prefetch_factor: must be at least 1, got 0"},
      {R"({"use": "loader", "where": {"name": "load"}})",
       "no task matches \"where\" (kind input, name \"load\")"},
      {R"({"use": "loader", "worker": 2})",
       "there is no setting \"worker\"; the settings are batch_time, cores, first_touch"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kInline, transform).substr(0, std::string_view(message).size()), message);
  }
}

#undef LOADER

}  // namespace
}  // namespace foretrace
