#include "trace/launch_shape.h"

#include <gtest/gtest.h>

#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/trace_part.h"
#include "support/folder.h"

namespace foretrace {
namespace {

constexpr LaunchShape kShape{.grid_x = 2,
                             .grid_y = 3,
                             .grid_z = 1,
                             .block_x = 64,
                             .block_y = 2,
                             .block_z = 1,
                             .registers = 40,
                             .static_shared = 1024,
                             .dynamic_shared = 2048};

/// Three kernels one after the other: one whose totals alone are known, and two with a shape.
Trace three_kernels() {
  Trace trace;
  trace.threads.push_back({.process = 1, .id = 2, .name = "main"});
  trace.streams.push_back({.device = 0, .id = 7});
  trace.launches = {
      {.grid_x = 9, .grid_y = 1, .grid_z = 1, .block_x = 32, .block_y = 1, .block_z = 2}, kShape};
  trace.hosts.push_back({.start_ns = 0,
                         .duration_ns = 10,
                         .name = trace.names.intern("cudaLaunchKernel"),
                         .correlation = 9,
                         .kind = HostKind::runtime});
  const auto kernel = [&](std::int64_t start, std::uint32_t grid, std::uint16_t block,
                          std::uint32_t launch) {
    trace.devices.push_back({.start_ns = start,
                             .duration_ns = 5000,
                             .name = trace.names.intern("gemm"),
                             .correlation = 9,
                             .grid = grid,
                             .launch = launch,
                             .block = block});
  };
  kernel(10'000, 8, 128, kNone), kernel(20'000, 9, 64, 0), kernel(30'000, 6, 128, 1);
  return trace;
}

void expect_shapes(const Trace& again, const std::string& form) {
  const Trace trace = three_kernels();
  ASSERT_EQ(again.devices.size(), 3U) << form;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again.devices[i].grid, trace.devices[i].grid) << form;
    EXPECT_EQ(again.devices[i].block, trace.devices[i].block) << form;
    EXPECT_EQ(launch_shape(again, again.devices[i]), launch_shape(trace, trace.devices[i])) << form;
  }
  EXPECT_NE(again.devices[2].launch, kNone) << form;
}

TEST(LaunchShape, ComesBackFromEveryFormat) {
  const Folder folder;
  const Trace trace = three_kernels();
  for (const std::string form : {"x.json", "x.sqlite", "x.ftrace", "x.pftrace"}) {
    export_trace(trace, folder / form);
    const Trace again = import_trace(folder / form);
    expect_shapes(again, form);
    // A second time, through another importer and exporter.
    export_trace(again, folder / ("again_" + form));
    expect_shapes(import_trace(folder / ("again_" + form)), form);
  }
}

TEST(LaunchShape, IsThatOfThePart) {
  const Trace part = cut(three_kernels(), {.begin_ns = 28'000, .end_ns = 40'000});
  ASSERT_EQ(part.devices.size(), 1U);
  EXPECT_EQ(part.launches, std::vector<LaunchShape>{kShape});
  EXPECT_EQ(launch_shape(part, part.devices[0]), kShape);
}

TEST(LaunchShape, ThatIsNotInTheTableIsRefused) {
  const Folder folder;
  Trace trace = three_kernels();
  trace.devices[0].launch = 2;
  write_ftrace(trace, folder / "x.ftrace");
  try {
    read_ftrace(folder / "x.ftrace");
    FAIL() << "was read";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("devices, row 0: the launch is impossible"),
              std::string::npos)
        << error.what();
  }
}

// As PyTorch's profiler writes it: one sum of shared memory.
TEST(LaunchShape, OfTheProfilerHasAllSharedMemoryInOneNumber) {
  const Folder folder;
  const Trace trace = import_trace(folder.write("x.json", R"({"traceEvents": [
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 9, "dur": 30,
 "args": {"device": 0, "stream": 7, "correlation": 11, "registers per thread": 40,
          "shared memory": 3072, "grid": [2, 3, 1], "block": [64, 2, 1]}},
{"ph": "X", "cat": "kernel", "name": "odd", "pid": 0, "tid": 7, "ts": 49, "dur": 30,
 "args": {"device": 0, "stream": 7, "correlation": 12, "grid": [5], "block": [2, 3, 4, 5, 99999999999]}},
{"ph": "X", "cat": "kernel", "name": "none", "pid": 0, "tid": 7, "ts": 89, "dur": 30,
 "args": {"device": 0, "stream": 7, "correlation": 13, "grid": "5", "block": [], "shared memory": -1}}]})"));
  ASSERT_EQ(trace.devices.size(), 3U);
  LaunchShape sum = kShape;
  sum.static_shared = 0, sum.dynamic_shared = 3072;
  EXPECT_EQ(launch_shape(trace, trace.devices[0]), sum);
  EXPECT_EQ(trace.devices[1].grid, 5U);
  EXPECT_EQ(trace.devices[1].block, 65'535U);
  EXPECT_EQ(trace.devices[2].grid, 0U);
  EXPECT_EQ(trace.devices[2].block, 0U);
  EXPECT_EQ(trace.devices[2].launch, kNone);
}

}  // namespace
}  // namespace foretrace
