#include <gtest/gtest.h>

#include "support/simulated.h"
#include "transform/checked.h"

namespace foretrace {
namespace {

// With a hand-over of 1us and no other cost, times in pictures can be counted.
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
  // Half of the first batch remains to be loaded when the recording begins, then all of the second.
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

/// Loads with four workers; each batch takes `ops` in an op of PyTorch and `python` outside of ops.
Effect loaded(const std::string& ops, const std::string& python, const std::string& more = "") {
  std::string text = "train: ";
  for (int i = 0; i < 3; ++i)
    text += "\"aten::div\":input " + ops + ", decode:input " + python + ", A:host 10, ";
  Graph graph = parse_graph(text.substr(0, text.size() - 2) + "\n");
  return read_transform_text("loader:workers=4,hand_over=0us,host_factor=1" + more)
      ->apply(graph, {});
}

TEST(Loader, OpsThatMayUseAllCoresMakeTheTimeALowerBound) {
  // All workers together may take 60us for each batch, as before, instead of 15us.
  const Effect effect = loaded("40", "20");
  EXPECT_DOUBLE_EQ(effect.slower, 60. / 15);
  ASSERT_EQ(effect.doubts.size(), 1U);
  EXPECT_EQ(effect.doubts[0],
            "66.7 % of loading is ops of PyTorch, which use all cores in the process that trains "
            "but one thread in a worker, so this is a lower bound; work_factor says how many times "
            "as long a worker takes");
}

TEST(Loader, PythonAndGivenTimesAreNoLowerBound) {
  for (const Effect& effect : {loaded("20", "40"), loaded("40", "20", ",work_factor=2"),
                               loaded("40", "20", ",batch_time=60us"),
                               loaded("40", "20", ",prep_rates=4:1000,samples=1")}) {
    EXPECT_EQ(effect.slower, 1);
    EXPECT_TRUE(effect.doubts.empty());
  }
}

TEST(Loader, CoresAreSharedWithTheTrainingThread) {
  // One worker and the training thread share one core: each gets half of it while both are busy.
  EXPECT_EQ(simulated(R"(
    train: a:input 2, A:host 2, b:input 2, B:host 2
)",
                      LOADER(R"(, "workers": 1, "cores": 1)")),
            R"(
train         |..........|
train+worker0 |..........|
cpu cores     |aabbbb.tBB|
              |..ttAAA...|
)");
}

TEST(Loader, AsManyCoresAsThreadsDelayNobody) {
  EXPECT_EQ(simulated(kInline, LOADER(R"(, "workers": 2, "cores": 3)")),
            simulated(kInline, LOADER(R"(, "workers": 2)")));
}

TEST(Loader, TheDeviceGoesOnWhileThreadsShareACore) {
  EXPECT_EQ(simulated(R"(
    train:  a:input 2, L:launch 2, b:input 2, M:launch 2
    stream: A 5, B 5
    L -> A
    M -> B
)",
                      LOADER(R"(, "workers": 1, "cores": 1)")),
            R"(
train         |.................|
stream        |.......AAAAABBBBB|
train+worker0 |.................|
cpu cores     |aabbbb.tMM.......|
              |..ttLLL..........|
)");
}

TEST(Loader, AThreadBeginsAtItsOwnTimeOnSharedCores) {
  // The first task of the thread waits for nothing, so not for the workers that share its cores.
  Graph graph = parse_graph(
      "train: S:host 2, a:input 2, A:host 2, b:input 2, B:host 2, "
      "c:input 2, C:host 2");
  const auto loader = read_transform(
      nlohmann::json::parse(LOADER(R"(, "workers": 2, "cores": 2, "prefetch_factor": 1)")));
  apply_checked(*loader, graph, {});
  EXPECT_EQ("\n" + to_ascii(graph, simulate(graph)), R"(
train         |............|
train+worker0 |............|
train+worker1 |............|
cpu cores     |aa.tcctBBtCC|
              |bbb.AA......|
              |SSS.........|
)");
}

// 100 samples of 1 kB; a batch takes 4 of them.
#define STORED(more) \
  LOADER(R"(, "dataset_bytes": "100kB", "dataset_samples": 100, "samples": 4)" more)

TEST(Loader, StorageIsReadBeforeWorkersPrepare) {
  // 4 kB at 1 GB/s take 4us, so the step is bound by the disk.
  EXPECT_EQ(simulated(R"(
    train: a:input 2, A:host 1, b:input 2, B:host 1, c:input 2, C:host 1
)",
                      STORED(R"(, "workers": 2, "storage": "1GB/s")")),
            R"(
train         |......tA..tB..tC|
train+worker0 |....aa......cc..|
train+worker1 |........bb......|
storage       |rrrrrrrrrrrr....|
)");
}

TEST(Loader, WhatIsCachedNeedsNoDisk) {
  // Half of the batch is read in 2us, and the only worker prepares it in 4us.
  EXPECT_EQ(
      simulated(R"(
    train: a:input 4, A:host 1, b:input 4, B:host 1, c:input 4, C:host 1
)",
                STORED(R"(, "workers": 1, "storage": "1GB/s", "cache": "minio", "cached": 0.5)")),
      R"(
train         |......tA....tB....tC|
train+worker0 |..aaaa..bbbb..cccc..|
storage       |rr....rr....rr......|
)");
}

TEST(Loader, WithoutWorkersTheTrainingThreadReads) {
  EXPECT_EQ(simulated("train: a:input 2, A:host 3, b:input 2, B:host 3",
                      STORED(R"(, "workers": 0, "storage": "1GB/s")")),
            R"(
train   |....aaAAA....bbBBB|
storage |rrrr.....rrrr.....|
)");
}

// Six steps with 60ms of device work, each with 24ms of loading.
constexpr auto kSteps = R"(
    @step one
    @step two
    @step three
    @step four
    @step five
    @step six
    train: i1:input 24000 {step=0}, l1:launch 5 {step=0}, s1:sync 1 {step=0}, i2:input 24000 {step=1}, l2:launch 5 {step=1}, s2:sync 1 {step=1}, i3:input 24000 {step=2}, l3:launch 5 {step=2}, s3:sync 1 {step=2}, i4:input 24000 {step=3}, l4:launch 5 {step=3}, s4:sync 1 {step=3}, i5:input 24000 {step=4}, l5:launch 5 {step=4}, s5:sync 1 {step=4}, i6:input 24000 {step=5}, l6:launch 5 {step=5}, s6:sync 1 {step=5}
    gpu: k1 40000 {step=0}, k2 40000 {step=1}, k3 40000 {step=2}, k4 40000 {step=3}, k5 40000 {step=4}, k6 40000 {step=5}
    l1 -> k1 [measured launch]
    l2 -> k2 [measured launch]
    l3 -> k3 [measured launch]
    l4 -> k4 [measured launch]
    l5 -> k5 [measured launch]
    l6 -> k6 [measured launch]
    k1 -> s1 [measured "device sync"]
    k2 -> s2 [measured "device sync"]
    k3 -> s3 [measured "device sync"]
    k4 -> s4 [measured "device sync"]
    k5 -> s5 [measured "device sync"]
    k6 -> s6 [measured "device sync"]
)";

struct Answer {
  Effect effect;
  Nanoseconds step{0};
};

Answer answer(const std::string& settings) {
  Graph graph = parse_graph(kSteps);
  Answer answer;
  answer.effect =
      read_transform_text("loader:hand_over=0us,host_factor=1," + settings)->apply(graph, {});
  answer.step = step_times(graph, simulate(graph)).step_time;
  return answer;
}

constexpr auto kImageNet =
    "samples=512,dataset_samples=1281167,dataset_bytes=146GiB,storage=530MB/s,";

TEST(Loader, TheReplayedStepIsThatOfTheFetchRate) {
  // F of equation 2 for 0 to 75 % of ImageNet-1k cached; training that is faster than F waits.
  const std::pair<const char*, double> cases[] = {
      {"0", 4331}, {"0.25", 5675}, {"0.35", 6479}, {"0.5", 8227}, {"0.75", 14949}};
  for (const auto& [cached, rate] : cases) {
    const Answer found = answer(std::string(kImageNet) +
                                "workers=24,cache=minio,cache_bandwidth=10GB/s,cached=" + cached);
    EXPECT_NEAR(figure(found.effect, "fetch_rate"), rate, 1e-3 * rate) << cached;
    const double step = std::max(512 / rate, 40.006e-3);
    EXPECT_NEAR(static_cast<double>(found.step.count()) / 1e9, step, 1e-3 * step) << cached;
    EXPECT_NEAR(figure(found.effect, "samples_per_second"), 512 / step, 1e-3 * 512 / step);
  }
}

TEST(Loader, StallsAreSharesOfTheStep) {
  const Answer found = answer(std::string(kImageNet) + "workers=24");
  const double step = 512 / 4331.4;
  EXPECT_NEAR(figure(found.effect, "fetch_stall"), (step - 40.006e-3) / step, 1e-3);
  EXPECT_EQ(figure(found.effect, "prep_stall"), 0);
  EXPECT_EQ(found.effect.summary.substr(found.effect.summary.rfind(';')),
            "; reading is what bounds a step");
}

TEST(Loader, OneWorkerReadsAndPreparesByTurns) {
  const Answer found = answer(std::string(kImageNet) + "workers=1");
  const double step = 512 / 4331.4 + 24e-3;
  EXPECT_NEAR(static_cast<double>(found.step.count()) / 1e9, step, 1e-3 * step);
}

TEST(Loader, CoordinatedJobsReadAndPrepareOnce) {
  const std::string page = std::string(kImageNet) + "workers=3,cache=page_cache,cached=0.35,";
  const Effect one = answer(page + "jobs=1").effect;
  const Effect apart = answer(page + "jobs=8").effect;
  const Effect together = answer(page + "jobs=8,coordinated=true").effect;
  EXPECT_EQ(figure(together, "disk_bytes"), figure(one, "disk_bytes"));
  EXPECT_EQ(figure(together, "prep_work"), figure(one, "prep_work"));
  EXPECT_EQ(figure(apart, "prep_work"), 8 * figure(one, "prep_work"));
  EXPECT_NEAR(figure(apart, "amplification"), 6.293, 0.001);
}

TEST(Loader, PartitionedCachesAskEachOther) {
  const Effect found =
      answer(std::string(kImageNet) + "cache=partitioned,servers=2,cached=0.51,network=1.25GB/s")
          .effect;
  EXPECT_EQ(figure(found, "disk_bytes"), 0);
  EXPECT_EQ(figure(found, "remote_bytes"), 146 * 1024.0 * 1024 * 1024 / 2 / 2);
}

TEST(Loader, RatesOfCoresSaturate) {
  const std::string rates = "samples=512,prep_rates=[3:6400,12:12800],workers=";
  EXPECT_EQ(answer(rates + "3").step, 80ms);
  EXPECT_EQ(answer(rates + "12").step, 40006us);
  EXPECT_EQ(answer(rates + "24,cores=3").step, 80ms);
}

TEST(Loader, CoresHaveTheTrainingThreadToRunToo) {
  // 16us of loading and 12us of training on one core.
  Graph graph = parse_graph(kInline);
  const Effect effect =
      read_transform_text("loader:hand_over=0us,host_factor=1,workers=1,cores=1")->apply(graph, {});
  EXPECT_DOUBLE_EQ(figure(effect, "prep_stall"), 16.0 / 28);
}

TEST(Loader, MoreWorkersNeverTakeLonger) {
  Nanoseconds before = Nanoseconds::max();
  for (int workers = 0; workers <= 40; ++workers) {
    const Nanoseconds step =
        answer(std::string(kImageNet) + "cache=minio,cached=0.5,workers=" + std::to_string(workers))
            .step;
    EXPECT_LE(step, before) << workers;
    before = step;
  }
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
            "batch_time: must be given, because the recorded job already had workers and their "
            "work is not in its trace");
  EXPECT_EQ(simulated(kWithWorkers, R"({"use": "loader", "workers": 0})"),
            simulated(kWithWorkers, R"({"use": "loader"})"));
  EXPECT_EQ(simulated(kWithWorkers, R"({"use": "loader", "workers": 0, "batch_time": "5us"})"), R"(
train |eeeeeAAA|
)");
  EXPECT_EQ(simulated(kWithWorkers, LOADER(R"(, "workers": 1, "batch_time": "5us")")), R"(
train         |.....tAAA|
train+worker0 |eeeee....|
)");
}

TEST(Loader, SaysWhatItDidAndWhatIsWrong) {
  Graph graph = parse_graph(kInline);
  EXPECT_EQ(read_transform_text("loader:workers=2,hand_over=1us")->apply(graph, {}).summary,
            "4 batches of 4 us loaded by 2 workers; the training thread keeps 1 us for each");
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "loader", "workers": -1})", "workers: must be at least 0, got -1"},
      {R"({"use": "loader", "prefetch_factor": 0})", "prefetch_factor: must be at least 1, got 0"},
      {R"({"use": "loader", "where": {"name": "load"}})",
       "no task matches \"where\" (kind input, name \"load\")"},
      {R"({"use": "loader", "worker": 2})",
       "there is no setting \"worker\"; the settings are batch_time, cache, "},
      {R"({"use": "loader", "storage": "1GB/s"})", "samples: must be given with storage"},
      {R"({"use": "loader", "dataset_bytes": "1GB"})",
       "dataset_samples: must be given with dataset_bytes"},
      {R"({"use": "loader", "samples": 1, "prep_rates": ["3"]})",
       "prep_rates: must be rows of cores and samples a second such as \"3:2100\", got \"3\""},
      {R"({"use": "loader", "cache": "fifo"})",
       "cache: must be one of none, minio, page_cache, lru, partitioned"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kInline, transform).substr(0, std::string_view(message).size()), message);
  }
}

#undef STORED
#undef LOADER

}  // namespace
}  // namespace foretrace
