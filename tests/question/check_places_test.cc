// A place where several kernels got slower is one cause, named after the greatest change.

#include <gtest/gtest.h>

#include <algorithm>
#include <fmt/core.h>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/question/check.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// Times in us of two kernels in a step, and whether one op launches both.
struct StepWork {
  int first = 0, second = 0;
  bool is_one_op = false;
};

/// The events of a recording, as PyTorch's profiler writes them.
class RecordedEvents {
 public:
  void add(std::string_view category, std::string_view event, int thread, int start, int duration,
           int launch, std::string_view more = "") {
    events_ += fmt::format(
        R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"correlation":{},"stream":{},"device":0{}}}}})",
        events_.empty() ? "" : ",\n", category, event, thread == 1 ? 1 : 0, thread, start, duration,
        launch, thread == 1 ? 7 : thread, more);
  }
  std::string write(const Folder& folder, const std::string& name) const {
    std::string path = folder / name;
    std::ofstream(path) << R"({"schemaVersion":1,"traceEvents":[)" << events_ << "]}";
    return path;
  }

 private:
  std::string events_;
};

/// Steps whose host waits for the device.
RecordedEvents recorded(const std::vector<StepWork>& steps) {
  RecordedEvents recording;
  int correlation = 0, now = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepWork& work = steps[i];
    const int begin = now, busy = work.first + work.second, length = busy + 40;
    recording.add("user_annotation", fmt::format("ProfilerStep#{}", i), 1, begin, length, 0);
    recording.add("cpu_op", "aten::first", 1, begin + 1, work.is_one_op ? 17 : 8, 0);
    recording.add("cuda_runtime", "cudaLaunchKernel", 1, begin + 2, 5, ++correlation);
    recording.add("kernel", "first_kernel", 7, begin + 10, work.first, correlation);
    if (!work.is_one_op) recording.add("cpu_op", "aten::second", 1, begin + 10, 8, 0);
    recording.add("cuda_runtime", "cudaLaunchKernel", 1, begin + 11, 5, ++correlation);
    recording.add("kernel", "second_kernel", 7, begin + 10 + work.first, work.second, correlation);
    recording.add("cuda_runtime", "cudaDeviceSynchronize", 1, begin + 20, busy - 5, ++correlation);
    now = begin + length;
  }
  return recording;
}

/// Six steps of a kernel of 1 ms, host work of 0.8 ms, and a kernel of 0.1 ms. The host waits once:
/// for the first kernel before its work, or at the end.
RecordedEvents waiting(bool waits_first) {
  RecordedEvents recording;
  int correlation = 0, now = 0;
  for (int i = 0; i < 6; ++i) {
    const int begin = now, work = begin + (waits_first ? 1020 : 20);
    const int second = waits_first ? work + 820 : begin + 1010, end = second + 100;
    recording.add("user_annotation", fmt::format("ProfilerStep#{}", i), 1, begin, end + 20 - begin,
                  0);
    recording.add("cpu_op", "aten::first", 1, begin + 1, 8, 0);
    recording.add("cuda_runtime", "cudaLaunchKernel", 1, begin + 2, 5, ++correlation);
    recording.add("kernel", "first_kernel", 7, begin + 10, 1000, correlation);
    if (waits_first) {
      recording.add("cpu_op", "aten::item", 1, begin + 12, 1005, 0);
      recording.add("cuda_runtime", "cudaStreamSynchronize", 1, begin + 13, 1000, ++correlation);
    }
    recording.add("cpu_op", "aten::host", 1, work, 800, 0);
    recording.add("cpu_op", "aten::second", 1, work + 805, 10, 0);
    recording.add("cuda_runtime", "cudaLaunchKernel", 1, work + 807, 5, ++correlation);
    recording.add("kernel", "second_kernel", 7, second, 100, correlation);
    if (!waits_first) {
      recording.add("cpu_op", "aten::to", 1, work + 820, end + 8 - work - 820, 0);
      recording.add("cuda_runtime", "cudaStreamSynchronize", 1, work + 821, end + 3 - work - 821,
                    ++correlation);
    }
    now = end + 20;
  }
  return recording;
}

CheckReport checked(const RecordedEvents& before, const RecordedEvents& after) {
  const Folder folder;
  const auto scenario_of = [](const std::string& path) {
    Scenario scenario;
    scenario.trace = path;
    return scenario;
  };
  const std::string old = before.write(folder, "old.json");
  const std::string now = after.write(folder, "now.json");
  return check(now, scenario_of(now), bless(old, scenario_of(old), {}), {});
}

TEST(CheckPlaces, OnePlaceIsNamedAfterItsGreatestChange) {
  const StepWork before{1000, 1000, true}, after{1100, 1900, true};
  const CheckReport report = checked(recorded(std::vector<StepWork>(6, before)),
                                     recorded(std::vector<StepWork>(6, after)));
  ASSERT_EQ(report.causes.size(), 1U);
  EXPECT_EQ(report.causes[0].local, 1000us);
  const std::string& what = report.causes[0].what;
  EXPECT_LT(what.find("second_kernel"), what.find("first_kernel")) << what;
}

TEST(CheckPlaces, AWaitThatMovedIsTheCauseIfNothingElseIs) {
  const CheckReport report = checked(waiting(false), waiting(true));
  ASSERT_FALSE(report.causes.empty());
  EXPECT_EQ(report.causes[0].what, "1 cudaStreamSynchronize moved here");
  EXPECT_EQ(report.causes[0].where, "aten::item");
  EXPECT_EQ(report.causes[0].effect, 830us);
  EXPECT_TRUE(checked(waiting(true), waiting(false)).causes.empty());
}

/// Six steps of two kernels and two all-reduces on a stream of their own, of 1 MB and 2 MB, which
/// take 100 us and 200 us when the other rank is there. The second begins with the second kernel,
/// or when that is done; the other rank comes `late` microseconds after this one.
RecordedEvents reduced(int late, bool begins_early) {
  RecordedEvents recording;
  int correlation = 0, now = 0;
  const auto launch = [&](int at, int start, int duration, int elements) {
    recording.add("cuda_runtime", "cudaLaunchKernel", 1, at, 5, ++correlation);
    if (elements == 0) return recording.add("kernel", "gemm", 7, start, duration, correlation);
    recording.add("kernel", "ncclDevKernel_AllReduce(int)", 8, start, duration, correlation,
                  fmt::format(R"(,"Collective name":"allreduce","dtype":"Float","Group size":2,)"
                              R"("In msg nelems":{0},"Out msg nelems":{0})",
                              elements));
  };
  for (int i = 0; i < 6; ++i) {
    const int begin = now, second = begin + 320, reduce = second + (begins_early ? 0 : 400);
    const int end = std::max(second + 400, reduce + 200 + late);
    recording.add("user_annotation", fmt::format("ProfilerStep#{}", i), 1, begin, end + 20 - begin,
                  0);
    launch(begin + 2, begin + 20, 300, 0);
    launch(begin + 10, begin + 20, 100, 250'000);
    launch(begin + 18, second, 400, 0);
    launch(begin + 26, reduce, 200 + late, 500'000);
    recording.add("cuda_runtime", "cudaDeviceSynchronize", 1, begin + 34, end - begin - 30,
                  ++correlation);
    now = end + 20;
  }
  return recording;
}

CheckOutcome standing_of_overlap(const RecordedEvents& before, const RecordedEvents& after) {
  for (const CheckedFigure& figure : checked(before, after).figures) {
    if (figure.name == "overlap") return figure.standing;
  }
  return CheckOutcome::left_out;
}

// The time for which this rank waits is not its own: with and without it, its kernels hide the
// same.
TEST(CheckOverlap, WaitingForOtherRanksLosesNone) {
  EXPECT_EQ(standing_of_overlap(reduced(0, true), reduced(1000, true)), CheckOutcome::passed);
  EXPECT_EQ(standing_of_overlap(reduced(1000, true), reduced(0, true)), CheckOutcome::passed);
}

TEST(CheckOverlap, CollectivesThatBeginTooLateLoseIt) {
  EXPECT_EQ(standing_of_overlap(reduced(0, true), reduced(0, false)), CheckOutcome::failed);
  EXPECT_EQ(standing_of_overlap(reduced(1000, true), reduced(0, false)), CheckOutcome::failed);
}

}  // namespace
}  // namespace foretrace
