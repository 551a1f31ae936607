#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "foretrace/trace_part.h"

namespace foretrace {
namespace {

//     host    |ProfilerStep#0     |ProfilerStep#1     |
//             |launch a   launch b|launch c           |
//     stream            |a.........|b.........|c......|
//     time    0         10         100
Trace two_steps() {
  Trace trace;
  trace.origin_ns = 1000;
  trace.threads.push_back({.process = 1, .id = 1, .name = {}});
  trace.streams.push_back({.device = 0, .id = 7});
  const auto host = [&](const char* name, std::int64_t start, std::int64_t duration,
                        std::uint32_t correlation, HostKind kind) {
    trace.hosts.push_back({.start_ns = start,
                           .duration_ns = duration,
                           .name = trace.names.intern(name),
                           .correlation = correlation,
                           .kind = kind});
  };
  host("main", 0, 200, 0, HostKind::python);
  host("ProfilerStep#0", 0, 100, 0, HostKind::annotation);
  host("ProfilerStep#1", 100, 100, 0, HostKind::annotation);
  host("cudaLaunchKernel", 5, 2, 1, HostKind::runtime);
  host("cudaLaunchKernel", 50, 2, 2, HostKind::runtime);
  host("cudaLaunchKernel", 120, 2, 3, HostKind::runtime);
  const auto kernel = [&](const char* name, std::int64_t start, std::uint32_t correlation) {
    trace.devices.push_back({.start_ns = start,
                             .duration_ns = 60,
                             .name = trace.names.intern(name),
                             .correlation = correlation});
  };
  kernel("a", 10, 1);
  kernel("b", 90, 2);
  kernel("c", 210, 3);
  return trace;
}

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> all;
  for (const HostRecord& record : trace.hosts) all.emplace_back(trace.names[record.name]);
  for (const DeviceRecord& record : trace.devices) all.emplace_back(trace.names[record.name]);
  return all;
}

TEST(Cut, KeepsWhatOverlapsWhatWasLaunchedAndTheLaunchesOfIt) {
  const Trace trace = two_steps();
  const auto window = window_of_steps(trace, {1, 1});
  ASSERT_TRUE(window);
  const Trace part = cut(trace, *window);
  // b overlaps the window, so its launch stays; c was launched in the step and ran after it.
  EXPECT_EQ(names(part), (std::vector<std::string>{"main", "ProfilerStep#1", "cudaLaunchKernel",
                                                   "cudaLaunchKernel", "b", "c"}));
  EXPECT_EQ(part.origin_ns, 1050);  // The launch of b is the first record.
  EXPECT_EQ(part.names.find("a"), NameId{});
}

TEST(Cut, KeepsWhatRanInFrontOfTheWorkOfTheWindow) {
  Trace trace = two_steps();
  trace.devices[0].duration_ns = 200;  // The device runs far behind the host.
  trace.devices[1].start_ns = 210;
  trace.devices[2].start_ns = 270;
  const Trace part = cut(trace, {100, 200});
  // b ran after the window, which c of the window waited for.
  EXPECT_EQ(part.devices.size(), 3U);
  EXPECT_EQ(part.hosts.size(), 5U);  // The main function, a marker and all launches.
  trace.devices[2].start_ns = 205;   // b ran behind c, so nothing waited for it.
  EXPECT_EQ(cut(trace, {100, 200}).devices.size(), 2U);
}

TEST(Cut, RangesEndWithTheWindowAndHalfStepsAreNoSteps) {
  const Trace part = cut(two_steps(), {110, 180});
  ASSERT_EQ(part.hosts[0].kind, HostKind::python);
  EXPECT_EQ(part.hosts[0].duration_ns, 70);
  EXPECT_EQ(part.names.find("ProfilerStep#1"), NameId{});
}

TEST(Cut, StepsThatAreNotThereAreAnErrorThatNamesThoseThatAre) {
  EXPECT_THROW(window_of_steps(two_steps(), {1, 2}), Error);
  EXPECT_FALSE(window_of_steps(Trace(), {0, 0}));
}

TEST(Cut, AnEmptyWindowIsAnError) {
  EXPECT_THROW(cut(two_steps(), {1000, 2000}), Error);
  EXPECT_THROW(cut(two_steps(), {10, 10}), Error);
}

}  // namespace
}  // namespace foretrace
