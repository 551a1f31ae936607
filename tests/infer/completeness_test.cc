// Recordings in which launches have no device work: it was lost, or the device had not come so far.

#include <gtest/gtest.h>

#include "foretrace/timeline.h"
#include "infer/recording.h"

namespace foretrace {
namespace {

/// The step time if all kernels take `factor` of their time.
Nanoseconds step_time_with_kernels(Recording& run, double factor) {
  Graph graph = infer(run.trace()).graph;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    Task& task = graph.task(TaskId{i});
    if (task.kind == TaskKind::kernel)
      task.duration = Nanoseconds(
          static_cast<std::int64_t>(static_cast<double>(task.duration.count()) * factor));
  }
  return step_times(graph, simulate(graph)).step_time;
}

/// The reasons that a recording gives: "fatal: 2 of 3 launches have no device work".
std::string shortcomings(Recording& run) {
  const Graph graph = infer(run.trace()).graph;
  std::string text;
  for (const Shortcoming& lack : graph.unexplained().shortcomings)
    text += (lack.is_fatal ? "fatal: " : "known: ") + lack.text + '\n';
  return text;
}

/// Steps of 1 ms with four kernels of 200 us, after which the host waits for them and works. Kernel
/// `i` of all is recorded if `has_kernel(i)`.
template <class HasKernel>
Recording steps_with_lost_kernels(int steps, HasKernel has_kernel) {
  Recording run;
  for (int i = 0; i < 4 * steps; ++i) {
    const int begin = 1000 * (i / 4), number = i % 4;
    if (number == 0) run.step(i / 4, begin, 999);
    const auto id = static_cast<std::uint32_t>(i + 1);
    run.call(0, "cudaLaunchKernel", begin + 10 * number, 5, id);
    if (has_kernel(i)) run.kernel(0, "k", begin + 10 + 200 * number, 200, id);
    if (number == 3)
      run.call(0, "cudaDeviceSynchronize", begin + 40, 772, static_cast<std::uint32_t>(1000 + i));
  }
  return run;
}

TEST(Completeness, StepsThatLostTheirKernelsDoNotCount) {
  for (const bool is_first : {false, true}) {
    Recording run = steps_with_lost_kernels(
        6, [&](int kernel) { return is_first ? kernel < 8 : kernel >= 16; });
    EXPECT_EQ(shortcomings(run),
              "known: 16 of 24 launches have no device work, so only 2 of 6 steps count\n");
    EXPECT_NEAR(static_cast<double>(step_time_with_kernels(run, 0.5).count()), 600e3, 15e3);
  }
}

TEST(Completeness, WithoutTwoWholeStepsInARowTheAnswerIsPoor) {
  Recording run = steps_with_lost_kernels(10, [](int kernel) { return kernel % 4 != 2; });
  EXPECT_TRUE(shortcomings(run).starts_with(
      "fatal: 10 of 40 launches have no device work, and no two steps in a row are whole; record "))
      << shortcomings(run);
  Recording scattered =
      steps_with_lost_kernels(10, [](int kernel) { return kernel / 4 == 3 || kernel / 4 == 8; });
  EXPECT_TRUE(shortcomings(scattered).starts_with("fatal: 32 of 40 launches"))
      << shortcomings(scattered);
  Recording none = steps_with_lost_kernels(3, [](int) { return false; });
  EXPECT_TRUE(
      shortcomings(none).starts_with("fatal: 12 of 12 launches have no device work; record the "
                                     "activities of the device as well\n"))
      << shortcomings(none);
}

TEST(Completeness, AGraphWithoutItsNodesIsALaunchWithoutWork) {
  Recording run;
  for (int i = 0; i < 4; ++i) {
    const auto id = static_cast<std::uint32_t>(i + 1);
    run.step(i, 100 * i, 99).call(0, "cudaGraphLaunch", 100 * i, 5, id);
    if (i % 2 == 0)
      run.kernel(0, "node", 100 * i + 10, 50, id).kernel(0, "node", 100 * i + 60, 30, id);
  }
  EXPECT_TRUE(shortcomings(run).starts_with("fatal: 2 of 4 launches have no device work"))
      << shortcomings(run);
}

// The host makes 400 launches that cost 5 us, for kernels of 100 us, and the device does not get
// far. The last steps have no kernels, but nothing was lost.
TEST(Completeness, StepsThatTheDeviceHasNotReachedDoNotCount) {
  Recording run;
  for (int i = 0; i < 400; ++i) {
    const auto id = static_cast<std::uint32_t>(i + 1);
    if (i % 20 == 0) run.step(i / 20, 6 * i, 119);
    run.call(0, "cudaLaunchKernel", 6 * i, 5, id);
    if (i < 110) run.kernel(0, "k", 10 + 100 * i, 100, id);
  }
  EXPECT_EQ(shortcomings(run), "");
  EXPECT_EQ(step_time_with_kernels(run, 1), 2000us);
  EXPECT_EQ(step_time_with_kernels(run, 0.5), 1000us);
}

/// A window of 300 kernels of 200 us and as many launches, each held back by a full queue: launch n
/// returns when kernel n is done, and is that of kernel n + `lead`. A step has 20 launches.
Recording window_of_a_full_queue(int lead) {
  Recording run;
  for (int i = 0; i < 300; ++i) {
    const auto id = static_cast<std::uint32_t>(1000 + i);
    if (i % 20 == 0) run.step(i / 20, 200 * i, 3999);
    run.call(0, "cudaLaunchKernel", 200 * i + 4, 196, id);
    run.kernel(0, "k", 200 * i + 2, 196, id - static_cast<std::uint32_t>(lead));
  }
  return run;
}

TEST(Completeness, TheLaunchesOfAHostThatIsAheadAreHeldBackToTheEnd) {
  for (const int lead : {120, 200}) {
    Recording run = window_of_a_full_queue(lead);
    EXPECT_EQ(shortcomings(run), "") << lead;
    EXPECT_EQ(step_time_with_kernels(run, 1), 4000us) << lead;
    EXPECT_EQ(step_time_with_kernels(run, 0.25), 1060us) << lead;
    EXPECT_EQ(infer(run.trace())
                  .notes.count(
                      "launches without a kernel: device records were dropped, so steps may look "
                      "shorter than they were"),
              0)
        << lead;
  }
  Recording short_window = window_of_a_full_queue(500);
  EXPECT_TRUE(shortcomings(short_window).starts_with("fatal: 300 of 300 launches had not begun"))
      << shortcomings(short_window);
}

/// Forty ops in a row, each with a kernel, some of them late; `stride` is the distance of the
/// numbers of two ops.
Recording numbered_ops(std::uint32_t stride, int first_of_other_thread = 0) {
  Recording run;
  for (int i = 0; i < 40; ++i) {
    const auto id = static_cast<std::uint32_t>(i + 1);
    run.op(i < 20 ? 0 : 1, "aten::mul", 2000 * i, 20);
    run.trace().hosts.back().external =
        stride * id + static_cast<std::uint32_t>(i < 20 ? 0 : first_of_other_thread);
    run.call(i < 20 ? 0 : 1, "cudaLaunchKernel", 2000 * i + 5, 5, id);
    run.kernel(0, "k", 2000 * i + (i % 3 == 2 ? 1700 : 10), 200, id);
  }
  return run;
}

TEST(Completeness, GapsBetweenTheNumbersOfOpsShowThatSomeAreMissing) {
  Recording run = numbered_ops(20);
  EXPECT_TRUE(shortcomings(run).starts_with(
      "fatal: 94.9 % of the ops are missing, by the gaps between their numbers, and what they did "
      "has no record: "))
      << shortcomings(run);
  Recording complete = numbered_ops(1);
  EXPECT_EQ(shortcomings(complete), "");
  Recording halved = numbered_ops(2);
  EXPECT_EQ(shortcomings(halved), "");
  // Each thread has a block of numbers of its own.
  Recording blocks = numbered_ops(1, 512 - 20);
  EXPECT_EQ(shortcomings(blocks), "");
  // Ops around a part of a recording began long before it.
  Recording part = numbered_ops(1);
  for (HostRecord& op : part.trace().hosts) op.external += op.external > 0 ? 10'000 : 0;
  for (int i = 0; i < 10; ++i) {
    part.op(0, "around", 0, 90'000);
    part.trace().hosts.back().external = static_cast<std::uint32_t>(200 * (41 + i));
  }
  EXPECT_EQ(shortcomings(part), "");
}

TEST(Completeness, ThreadsThatNothingStartsArePoorWithoutADevice) {
  const auto threads_with = [](int count) {
    Recording run;
    for (int i = 0; i < count; ++i) run.op(i, "PUSH_PULL", 1000 * i, 3000);
    return run;
  };
  Recording run = threads_with(10);
  EXPECT_EQ(shortcomings(run),
            "fatal: 9 of 10 threads begin without a recorded cause, and no device work connects "
            "them; record the job that gives them their work, too\n");
  Recording few = threads_with(4);
  EXPECT_EQ(shortcomings(few), "");
  run.call(0, "cudaLaunchKernel", 110, 5, 1).kernel(0, "k", 120, 200, 1);
  EXPECT_EQ(shortcomings(run), "");
}

}  // namespace
}  // namespace foretrace
