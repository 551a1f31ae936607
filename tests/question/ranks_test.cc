// Jobs of several ranks: they wait for the slowest rank, and need memory for the fullest.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/advise.h"
#include "foretrace/question/check.h"
#include "foretrace/question/predict.h"
#include "import/files.h"
#include "question/predict/baseline.h"

namespace foretrace {
namespace {

/// In each step the host launches a kernel, waits for it while it holds a block of memory, and then
/// works. Times are in us.
struct RecordedRank {
  int duration = 100;  ///< The kernel takes this long.
  int host = 0;
  std::int64_t bytes = 1'000'000;
  int first_duration = 0;  ///< Duration in the first step, if it differs.
};

std::string recording_of(int number, std::size_t ranks, const RecordedRank& rank) {
  std::ostringstream out;
  out << R"({"schemaVersion": 1, "distributedInfo": {"rank": )" << number << R"(, "world_size": )"
      << ranks << R"(}, "traceEvents": [{"ph": "M", "name": "process_name", "pid": 1})";
  const auto event = [&](const std::string& category, const std::string& name, int thread,
                         int start, int duration, int correlation) {
    out << R"(, {"ph": "X", "cat": ")" << category << R"(", "name": ")" << name << R"(", "pid": )"
        << (thread == 7 ? 0 : 1) << R"(, "tid": )" << thread << R"(, "ts": )" << start
        << R"(, "dur": )" << duration << R"(, "args": {"device": 0, "stream": 7, "correlation": )"
        << correlation << "}}";
  };
  const auto memory = [&](int time, std::int64_t bytes) {
    out << R"(, {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "s": "t", "ts": )"
        << time << R"(, "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": )"
        << bytes << "}}";
  };
  int time = 1000;
  for (int step = 0; step < 5; ++step) {
    const int duration = step == 0 && rank.first_duration > 0 ? rank.first_duration : rank.duration;
    event("user_annotation", "ProfilerStep#" + std::to_string(step), 1, time,
          duration + rank.host + 10, 0);
    event("cuda_runtime", "cudaLaunchKernel", 1, time + 1, 2, 2 * step + 1);
    event("cuda_runtime", "cudaDeviceSynchronize", 1, time + 4, duration + 3, 2 * step + 2);
    event("kernel", "gemm", 7, time + 5, duration, 2 * step + 1);
    memory(time + 1, rank.bytes);
    memory(time + duration + 8, -rank.bytes);
    if (rank.host > 0) event("cpu_op", "augment", 1, time + duration + 9, rank.host, 0);
    time += duration + rank.host + 10;
  }
  out << "]}";
  return out.str();
}

class RecordedJob {
 public:
  explicit RecordedJob(const std::vector<RecordedRank>& ranks) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      folder_.write("rank" + std::to_string(i) + ".json",
                    recording_of(static_cast<int>(i), ranks.size(), ranks[i]));
    }
  }
  const std::string& path() const { return folder_.path(); }

 private:
  Folder folder_;
};

Scenario half_the_gemms() {
  constexpr auto kStep = "scale:where.name=gemm,factor=0.5";
  Scenario scenario;
  scenario.transforms.push_back(read_transform_text(kStep));
  scenario.uses.emplace_back(kStep);
  return scenario;
}

const RecordedRank kDeviceBoundRank{.duration = 100, .bytes = 3'000'000};
const RecordedRank kHostBoundRank{.duration = 10, .host = 70, .bytes = 1'000'000};

TEST(Ranks, TheJobIsAsSlowAsItsSlowestRankBeforeAndAfter) {
  const RecordedJob job({kDeviceBoundRank, kHostBoundRank});
  const Prediction prediction = predict(Job(job.path()), half_the_gemms());
  EXPECT_EQ(prediction.measured.step_time, 110us);
  EXPECT_EQ(prediction.baseline.step_time, 110us);
  EXPECT_EQ(prediction.predicted.step_time, 85us);
  EXPECT_NEAR(prediction.speedup, 110.0 / 85, 1e-9);
}

// The unexplained time and the step time that it is a share of must belong to the same rank.
TEST(Ranks, WhatIsSaidOfTheRecordingIsOfOneRank) {
  Prediction slowest_then, slowest_now;
  slowest_then.baseline.step_time = 110us;
  slowest_then.baseline_open = {.unexplained = 3us, .other_ranks = 20us};
  slowest_now.baseline.step_time = 90us;
  slowest_now.baseline_open = {.unexplained = 1us, .other_ranks = 50us};
  slowest_now.predicted.step_time = 55us;
  compare_with(slowest_then, slowest_now);
  EXPECT_EQ(slowest_now.baseline.step_time, 110us);
  EXPECT_EQ(slowest_now.baseline_open.unexplained, 3us);
  EXPECT_EQ(slowest_now.baseline_open.other_ranks, 20us);
  EXPECT_EQ(slowest_now.speedup, 2);
}

Scenario scenario_with(const std::string& use) {
  Scenario scenario;
  scenario.transforms.push_back(read_transform_text(use));
  scenario.uses.push_back(use);
  return scenario;
}

TEST(Ranks, LearnFromTheSameRankOfAnotherTrace) {
  const RecordedRank usual, slow{.duration = 200}, by_host{.duration = 100, .host = 500};
  const RecordedJob donor({{.duration = 50}, slow});
  const Scenario scenario = scenario_with("kernel_from:trace=" + donor.path());
  EXPECT_EQ(predict(Job(RecordedJob({usual, usual}).path()), scenario).predicted.step_time, 210us);
  const Prediction lacking = predict(Job(RecordedJob({usual, usual, by_host}).path()), scenario);
  EXPECT_EQ(lacking.predicted.step_time, 560us);
  EXPECT_TRUE(std::any_of(lacking.notes.all().begin(), lacking.notes.all().end(), [](auto& note) {
    return note.text == "the other trace lacks this rank, so its first one is taken";
  }));
}

TEST(Ranks, ATransformMayNameARankOfAFolder) {
  const RecordedJob job({kDeviceBoundRank, kHostBoundRank});
  const auto half_of = [](int rank) {
    return scenario_with("scale:where.name=gemm,where.rank=" + std::to_string(rank) +
                         ",factor=0.5");
  };
  // If one rank is halved, the other keeps its time: rank 1 its 90 us, or rank 0 its 110 us.
  const Prediction first = predict(Job(job.path()), half_of(0));
  EXPECT_EQ(first.predicted.step_time, 90us);
  ASSERT_EQ(first.steps.size(), 1U);
  EXPECT_EQ(first.steps[0].summary.rfind("rank 0: ", 0), 0U) << first.steps[0].summary;
  EXPECT_EQ(predict(Job(job.path()), half_of(1)).predicted.step_time, 110us);
  try {
    predict(Job(job.path()), half_of(2));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "scale:where.name=gemm,where.rank=2,factor=0.5: there are no tasks of rank 2; the "
                 "ranks of this job are 0, 1");
  }
}

TEST(Ranks, AVaryMayNameARankOfAFolder) {
  const RecordedJob job({kDeviceBoundRank, kHostBoundRank});
  const Curve curve = vary(Job(job.path()), scenario_with("scale:where.name=gemm,where.rank=0"),
                           {.setting = "scale.factor", .values = "0.5,1,2", .until = ""});
  ASSERT_EQ(curve.points.size(), 3U);
  EXPECT_EQ(curve.points[0].step_time, 90us);
  EXPECT_EQ(curve.points[1].step_time, 110us);
  EXPECT_EQ(curve.points[2].step_time, 210us);
}

TEST(Ranks, TheJobNeedsRoomForItsFullestRank) {
  const RecordedJob job({kDeviceBoundRank, kHostBoundRank});
  const Prediction prediction = predict(Job(job.path()), half_the_gemms());
  ASSERT_EQ(prediction.predicted_memory.size(), 1U);
  EXPECT_EQ(prediction.predicted_memory[0].peak_allocated, Bytes{3'000'000});
}

TEST(Ranks, AdviceIsForTheSlowest) {
  for (const std::vector<RecordedRank>& ranks : {std::vector{kDeviceBoundRank, kHostBoundRank},
                                                 std::vector{kHostBoundRank, kDeviceBoundRank}}) {
    const RecordedJob job(ranks);
    EXPECT_EQ(advise(Job(job.path()), AdviceQuestion{}, {}).step_time, 110us);
  }
}

const CheckedFigure& figure_of(const CheckReport& report, std::string_view name) {
  for (const CheckedFigure& figure : report.figures) {
    if (figure.name == name) return figure;
  }
  static const CheckedFigure none;
  ADD_FAILURE() << "no figure " << name;
  return none;
}

TEST(Ranks, ACheckSeesThatAnotherRankBecameTheSlowest) {
  const RecordedJob before({kDeviceBoundRank, kHostBoundRank});
  // The first step is a warm-up step and is not compared.
  RecordedRank slower = kHostBoundRank;
  slower.duration = 130, slower.first_duration = 5000;
  const RecordedJob after({kDeviceBoundRank, slower});
  const CheckBaseline baseline = bless(before.path(), {}, {});
  EXPECT_EQ(check(before.path(), {}, baseline, {}).standing(), CheckOutcome::passed);
  const CheckReport report = check(after.path(), {}, baseline, {});
  EXPECT_EQ(report.standing(), CheckOutcome::failed);
  const CheckedFigure& step = figure_of(report, "step_time");
  EXPECT_EQ(step.after, 210'000);
  EXPECT_EQ(step.upper, 100'000);
}

TEST(Ranks, ACheckSeesThatAnotherRankNeedsMoreMemory) {
  const RecordedJob before({kDeviceBoundRank, kHostBoundRank});
  RecordedRank fuller = kHostBoundRank;
  fuller.bytes = 10'000'000;
  const RecordedJob after({kDeviceBoundRank, fuller});
  const CheckReport report = check(after.path(), {}, bless(before.path(), {}, {}), {});
  EXPECT_EQ(figure_of(report, "peak_allocated").after, 10'000'000);
  EXPECT_EQ(figure_of(report, "step_time").standing, CheckOutcome::passed);
  EXPECT_EQ(report.standing(), CheckOutcome::failed);
}

}  // namespace
}  // namespace foretrace
