// A place where several kernels got slower is one cause, named after the greatest change.

#include <gtest/gtest.h>

#include <fmt/core.h>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/ask/check.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// Times in us of two kernels in a step, and whether one op launches both.
struct StepWork {
  int first = 0, second = 0;
  bool is_one_op = false;
};

/// Writes steps whose host waits for the device, as PyTorch's profiler does. Returns the path.
std::string recording(const Folder& folder, const std::string& name,
                      const std::vector<StepWork>& steps) {
  std::string events;
  int correlation = 0;
  const auto add = [&](std::string_view category, std::string_view event, int thread, int start,
                       int duration, int launch) {
    events += fmt::format(
        R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"correlation":{},"stream":7,"device":0}}}})",
        events.empty() ? "" : ",\n", category, event, thread == 7 ? 0 : 1, thread, start, duration,
        launch);
  };
  int now = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepWork& work = steps[i];
    const int begin = now, busy = work.first + work.second, length = busy + 40;
    add("user_annotation", fmt::format("ProfilerStep#{}", i), 1, begin, length, 0);
    add("cpu_op", "aten::first", 1, begin + 1, work.is_one_op ? 17 : 8, 0);
    add("cuda_runtime", "cudaLaunchKernel", 1, begin + 2, 5, ++correlation);
    add("kernel", "first_kernel", 7, begin + 10, work.first, correlation);
    if (!work.is_one_op) add("cpu_op", "aten::second", 1, begin + 10, 8, 0);
    add("cuda_runtime", "cudaLaunchKernel", 1, begin + 11, 5, ++correlation);
    add("kernel", "second_kernel", 7, begin + 10 + work.first, work.second, correlation);
    add("cuda_runtime", "cudaDeviceSynchronize", 1, begin + 20, busy - 5, ++correlation);
    now = begin + length;
  }
  std::string path = folder / name;
  std::ofstream(path) << R"({"schemaVersion":1,"traceEvents":[)" << events << "]}";
  return path;
}

CheckReport checked(const std::vector<StepWork>& before, const std::vector<StepWork>& after) {
  const Folder folder;
  const auto scenario_of = [](const std::string& path) {
    Scenario scenario;
    scenario.trace = path;
    return scenario;
  };
  const std::string old = recording(folder, "old.json", before);
  const std::string now = recording(folder, "now.json", after);
  return check(now, scenario_of(now), bless(old, scenario_of(old), {}), {});
}

TEST(CheckPlaces, OnePlaceIsNamedAfterItsGreatestChange) {
  const StepWork before{1000, 1000, true}, after{1100, 1900, true};
  const CheckReport report =
      checked(std::vector<StepWork>(6, before), std::vector<StepWork>(6, after));
  ASSERT_EQ(report.causes.size(), 1U);
  EXPECT_EQ(report.causes[0].local, 1000us);
  const std::string& what = report.causes[0].what;
  EXPECT_LT(what.find("second_kernel"), what.find("first_kernel")) << what;
}

}  // namespace
}  // namespace foretrace
