// Causes of a slowdown, on graphs of a few kernels: what each claims, and in which order.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foretrace/simulate.h"
#include "question/check/job/changes.h"
#include "question/check/job/figures.h"
#include "question/check/judge.h"

namespace foretrace {
namespace {

/// Kernels of one name, with their microseconds in each step.
struct SteppedKernel {
  std::string name;
  std::vector<int> us;
};

Graph stepped_graph(const std::vector<SteppedKernel>& kernels) {
  std::string steps, tasks;
  for (std::size_t step = 0; step < kernels.front().us.size(); ++step) {
    const std::string number = std::to_string(step);
    steps += "@step ProfilerStep#" + number + "\n";
    for (const SteppedKernel& kernel : kernels) {
      tasks += (tasks.empty() ? "gpu: " : ", ") + kernel.name + ":kernel " +
               std::to_string(kernel.us[step]) + " {step=" + number + "}";
    }
  }
  return parse_graph(steps + tasks);
}

/// A job without call sites, so that its work is told apart by name.
struct SteppedJob {
  explicit SteppedJob(const std::vector<SteppedKernel>& kernels) : graph(stepped_graph(kernels)) {}
  Trace trace;
  Graph graph;
  Timeline replayed = simulate(graph, {.reasons = true});
  CallSites sites{trace, graph};
  ObservedJob job{trace, graph, replayed, replayed, sites, graph.task_count()};
  Grouping grouping = group_work(job, 0);

  JobSummary summary() const {
    JobSummary of;
    of.groups = grouping.groups;
    of.figures = figures_of(job);
    return of;
  }
};

std::vector<CheckCause> causes_of_slowdown(const std::vector<SteppedKernel>& was,
                                           const std::vector<SteppedKernel>& now) {
  const SteppedJob before(was), after(now);
  const JobSummary old = before.summary(), judged = after.summary();
  CheckedFigure step;
  step.name = kStepTime, step.unit = FigureUnit::time;
  step.before = step_time_of(old)->count(), step.after = step_time_of(judged)->count();
  step.standing = CheckOutcome::failed;
  return causes_of({.job = after.job,
                    .grouping = after.grouping,
                    .kernels = {},
                    .before = old,
                    .after = judged,
                    .figures = {step}});
}

// The step of the median is another one without the added work, and shorter by 1 ms.
TEST(CheckCauses, ClaimNoMoreThanTheirOwnWork) {
  const std::vector<int> others = {500, 9000, 8000, 3000, 4000};
  const auto causes =
      causes_of_slowdown({{"other", others}, {"gemm", {500, 500, 500, 500, 500}}},
                         {{"other", others}, {"gemm", {1000, 1000, 1000, 2000, 2000}}});
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0].local, 500us);
  EXPECT_EQ(causes[0].effect, 500us);
}

TEST(CheckCauses, AreAllListedTheGreatestFirst) {
  const auto all = [](int us) { return std::vector<int>(5, us); };
  const auto causes =
      causes_of_slowdown({{"other", all(5000)}, {"norm", all(500)}, {"gemm", all(500)}},
                         {{"other", all(5000)}, {"norm", all(800)}, {"gemm", all(1200)}});
  ASSERT_EQ(causes.size(), 2U);
  EXPECT_EQ(causes[0].what, "gemm slower: 500 us -> 1.2 ms");
  EXPECT_EQ(causes[0].effect, 700us);
  EXPECT_EQ(causes[1].what, "norm slower: 500 us -> 800 us");
  EXPECT_EQ(causes[1].effect, 300us);
}

/// A step that takes `more` more, within `noise`, with causes of these effects.
CheckReport settled(Nanoseconds more, Nanoseconds noise, const std::vector<Nanoseconds>& effects) {
  CheckReport report;
  CheckedFigure step;
  step.name = kStepTime, step.unit = FigureUnit::time;
  step.before = 10'000'000, step.after = 10'000'000 + more.count();
  step.lower = (more - noise).count(), step.upper = (more + noise).count();
  report.figures = {step};
  for (const Nanoseconds effect : effects) {
    CheckCause cause;
    cause.effect = effect, cause.local = effect, cause.figure = kStepTime;
    report.causes.push_back(cause);
  }
  settle_effects(report);
  return report;
}

TEST(CheckCauses, AndWhatIsLeftAreTheChangeOfTheStep) {
  EXPECT_EQ(settled(10ms, 100us, {6ms, 3ms}).left, 1ms);
  EXPECT_EQ(settled(10ms, 100us, {8ms, 3ms}).left, -1ms);
  EXPECT_EQ(settled(10ms, 100us, {7ms, 3050us}).left, std::nullopt);
  EXPECT_EQ(settled(10ms, 100us, {}).left, std::nullopt);
}

TEST(CheckCauses, DoNotSlowAStepThatIsNotSlower) {
  const CheckReport report = settled(100us, 200us, {6ms, 3ms});
  EXPECT_EQ(report.left, std::nullopt);
  for (const CheckCause& cause : report.causes) EXPECT_EQ(cause.effect, std::nullopt);
  EXPECT_EQ(settled(-5ms, 200us, {6ms}).causes[0].effect, std::nullopt);
}

TEST(CheckCauses, OfOneSlowStepAreNoPartOfTheMedian) {
  CheckReport report = settled(0ms, 0ms, {});
  CheckCause pause;
  pause.effect = 40ms, pause.figure = kSlowestStep;
  report.causes = {pause};
  settle_effects(report);
  EXPECT_EQ(report.causes[0].effect, 40ms);
  EXPECT_EQ(report.left, std::nullopt);
}

}  // namespace
}  // namespace foretrace
