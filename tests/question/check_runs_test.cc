// Baselines made of several recordings, figures other than medians, and recordings of another job.

#include <gtest/gtest.h>

#include <cmath>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "foretrace/question/check.h"
#include "question/check/job/changes.h"
#include "question/check/job/figures.h"
#include "question/check/judge.h"
#include "question/check/same_job.h"

namespace foretrace {
namespace {

using Steps = std::vector<std::int64_t>;

CheckBaseline baseline_of(const std::string& metric, const std::vector<Steps>& runs) {
  CheckBaseline baseline;
  baseline.scenario = "{\"version\":1}";
  const FigureEntry& entry = figure_entry(metric);
  baseline.summary.figures[metric] = runs.front();
  for (const Steps& run : runs) {
    if (runs.size() > 1) baseline.summary.runs.push_back({{metric, run}});
  }
  if (!entry.limits.fail.empty()) baseline.fail[metric] = parse_limit(entry.limits.fail, entry);
  if (!entry.limits.warn.empty()) baseline.warn[metric] = parse_limit(entry.limits.warn, entry);
  return baseline;
}

CheckedFigure judged(const std::string& metric, const std::vector<Steps>& runs, const Steps& now) {
  JobSummary summary;
  summary.figures[metric] = now;
  return judged_figures(baseline_of(metric, runs), summary, {}).front();
}

std::string standing_of(const std::string& metric, const std::vector<Steps>& runs,
                        const Steps& now) {
  return std::string(to_string(judged(metric, runs, now).standing));
}

TEST(CheckRuns, WhatRecordingsDifferByIsNoRegression) {
  const Steps fast = {1500, 1501, 1502, 1503, 1504}, slow = {1700, 1701, 1702, 1703, 1704};
  EXPECT_EQ(standing_of("step_time", {fast}, slow), "failed");
  EXPECT_EQ(standing_of("step_time", {fast, slow}, slow), "passed");
  EXPECT_EQ(standing_of("step_time", {fast, slow}, fast), "passed");
}

TEST(CheckRuns, BeyondAllThatIsKnownButWithinWhatMayBeIsUndecided) {
  const Steps fast = {1500, 1501, 1502, 1503, 1504}, slow = {1600, 1601, 1602, 1603, 1604};
  const Steps slower = {1750, 1751, 1752, 1753, 1754};
  EXPECT_EQ(standing_of("step_time", {fast, slow}, slower), "undecided");
  EXPECT_EQ(
      judged("step_time", {fast, slow}, slower).why,
      "the 2 recordings of the baseline differ so much that a further one may differ as much");
  const Steps middle = {1550, 1551, 1552, 1553, 1554};
  EXPECT_EQ(standing_of("step_time", {fast, slow, middle, fast, slow}, slower), "failed");
}

TEST(CheckRuns, ThoseThatAgreeFailAsOneDoes) {
  const Steps one = {1500, 1501, 1502, 1503, 1504}, two = {1501, 1502, 1503, 1504, 1505};
  EXPECT_EQ(standing_of("step_time", {one, two}, {1600, 1601, 1602, 1603, 1604}), "failed");
}

TEST(CheckRuns, CountsHaveNoReach) {
  EXPECT_EQ(standing_of("syncs", {{3, 3}, {5, 5}}, {5, 5}), "passed");
  EXPECT_EQ(standing_of("syncs", {{3, 3}, {5, 5}}, {6, 6}), "failed");
}

TEST(CheckRuns, AreInTheFile) {
  CheckBaseline baseline = baseline_of("step_time", {{100, 101}, {110, 112}});
  KernelTimes kernel{.name = "gemm", .key = "0123", .count = 4, .each = 10us};
  kernel.least = 9us, kernel.most = 11us, kernel.runs = {10'000, 10'500};
  baseline.summary.kernels = {kernel};
  const std::string text = write_baseline(baseline);
  EXPECT_NE(text.find(R"("steps":[100,101],"runs":[[100,101],[110,112]])"), std::string::npos);
  EXPECT_NE(text.find(R"({"name":"gemm","key":"0123","count":4,"each_ns":10000,"least_ns":9000,)"
                      R"("most_ns":11000,"runs_ns":[10000,10500]})"),
            std::string::npos)
      << text;
  EXPECT_EQ(write_baseline(parse_baseline_text(text)), text);
}

TEST(CheckRuns, OlderFilesAreRead) {
  CheckBaseline baseline = baseline_of("step_time", {{100, 101}});
  baseline.summary.figures["host_time"] = {50, 51};
  baseline.fail["host_time"] = parse_limit("5%", figure_entry("host_time"));
  std::string text = write_baseline(baseline);
  text.replace(text.find("baseline/2"), 10, "baseline/1");
  text.erase(text.find("  \"kernels\": ["), std::string("  \"kernels\": [\n  ],\n").size());
  const CheckBaseline read = parse_baseline_text(text);
  EXPECT_EQ(read.outdated, std::vector<std::string>{"host_time"});
  EXPECT_FALSE(read.summary.figures.contains("host_time"));
  EXPECT_FALSE(read.fail.contains("host_time"));
  EXPECT_EQ(read.summary.figures.at("step_time"), (Steps{100, 101}));
}

// A pause in one of five steps leaves the median as it is.
TEST(CheckFigures, APauseInOneStepIsSeenInTheSlowestAndInTheMean) {
  const Steps before = {1000, 1010, 1020, 1005, 1015}, after = {1000, 1010, 1420, 1005, 1015};
  EXPECT_EQ(standing_of("step_time", {before}, after), "passed");
  EXPECT_EQ(standing_of("slowest_step", {before}, after), "warned");
  EXPECT_EQ(judged("slowest_step", {before}, after).after, 1420);
  EXPECT_EQ(judged("mean_step", {before}, after).after, 1090);
  EXPECT_EQ(standing_of("mean_step", {before}, after), "passed");
  EXPECT_EQ(judged("mean_step", {before}, after).why.substr(0, 20), "steps vary: between ");
  Steps many_before, many_after;
  for (int i = 0; i < 100; ++i) {
    many_before.push_back(1000 + i % 7);
    many_after.push_back(1000 + i % 7 + (i % 5 == 0 ? 400 : 0));
  }
  EXPECT_EQ(standing_of("mean_step", {many_before}, many_after), "warned");
}

TEST(CheckFigures, ASlowStepOfABaselineThatHasSomeIsNoChange) {
  const Steps before = {1000, 1300, 1000, 1010, 1005};
  EXPECT_EQ(standing_of("slowest_step", {before}, {1000, 1010, 1000, 1450, 1005}), "passed");
}

// The baseline is slower as a whole: its slowest step is as long as the step with the pause.
TEST(CheckFigures, APauseInAFasterRecordingIsSeenBesideItsOwnMedian) {
  EXPECT_EQ(standing_of("slowest_step", {{1500, 1490, 1500, 1500}}, {1000, 1000, 1400, 1000}),
            "passed");
  EXPECT_EQ(standing_of("slowest_excess", {{0, 0, 10'000, 0}}, {0, 0, 400'000, 0}), "warned");
  EXPECT_EQ(standing_of("slowest_excess", {{0, 0, 300'000, 0}}, {0, 0, 400'000, 0}), "passed");
}

TEST(CheckFigures, StepsThatAlternateAreHeldAgainstThoseOfTheirKind) {
  StepTimes times;
  for (const Nanoseconds length : {9ns, 10ns, 30ns, 10ns, 30ns, 10ns, 35ns})
    times.each.push_back(length);
  times.first = 1, times.period = 2;
  const std::vector<UsualLength> steps = usual_lengths(times);
  ASSERT_EQ(steps.size(), 6u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(steps[i].more(), 0ns) << i;
  EXPECT_EQ(steps[5].usual, 30ns);
  EXPECT_EQ(steps[5].more(), 5ns);
}

JobSummary of_kernels(std::vector<JobGroup> groups) {
  JobSummary summary;
  summary.groups = std::move(groups);
  summary.figures["step_time"] = {20'000'000, 20'000'000, 20'000'000};
  return summary;
}

JobGroup kernels_of_place(const std::string& name, std::int64_t count, Nanoseconds work) {
  JobGroup group{.kind = TaskKind::kernel, .op = "aten::linear", .name = name, .count = count};
  group.work = group.least = group.most = work;
  return group;
}

// Half of the kernels of one name, which take little of its time, are replaced by others, so the
// number of kernels stays the same.
TEST(CheckFigures, KernelsReplacedBySlowerOnesAtTheirPlaceAreSeen) {
  const JobSummary before = of_kernels({kernels_of_place("gemm", 8, 9ms)});
  const auto replaced = [&](std::int64_t count, Nanoseconds work) {
    return of_kernels({kernels_of_place("gemm", 4, 8ms), kernels_of_place("other", count, work)});
  };
  EXPECT_EQ(slower_places(before, replaced(4, 1400us)), 1);
  EXPECT_EQ(slower_places(before, replaced(4, 1ms)), 0);
  EXPECT_EQ(slower_places(before, replaced(5, 1400us)),
            0);  // With more kernels it is another change.
  EXPECT_EQ(slower_places(before, of_kernels({kernels_of_place("other", 8, 12ms)})), 1);
}

// A warning does not have to be certain, but it says how uncertain it is.
TEST(CheckFigures, AWarningSaysHowMuchStepsVary) {
  const Steps before = {1000, 1010, 1020, 1030}, after = {1050, 1200, 1500, 1700};
  const CheckedFigure figure = judged("collective_time", {before}, after);
  EXPECT_EQ(figure.standing, CheckOutcome::warned);
  EXPECT_EQ(figure.why, "steps vary: between 30 ns and 690 ns more");
}

/// The standings of three figures that change from 100 ms, of which the first is the step time.
std::string standings_with_waits(std::int64_t step, std::int64_t exposed,
                                 std::int64_t collectives) {
  CheckBaseline baseline;
  JobSummary now;
  const std::pair<const char*, std::int64_t> figures[] = {
      {"step_time", step}, {"exposed_communication", exposed}, {"collective_time", collectives}};
  for (const auto& [name, value] : figures) {
    const CheckBaseline one = baseline_of(name, {Steps(5, 100'000'000)});
    baseline.summary.figures.insert(one.summary.figures.begin(), one.summary.figures.end());
    baseline.fail.insert(one.fail.begin(), one.fail.end());
    baseline.warn.insert(one.warn.begin(), one.warn.end());
    now.figures[name] = Steps(5, value * 1'000'000);
  }
  std::string standings;
  for (const CheckedFigure& figure : judged_figures(baseline, now, {}))
    standings += fmt::format("{} {}; ", figure.name, to_string(figure.standing));
  return standings;
}

TEST(CheckFigures, WaitingForOthersInStepsThatTakeNoLongerIsNoWarning) {
  EXPECT_EQ(standings_with_waits(100, 150, 150),
            "step_time passed; collective_time passed; exposed_communication passed; ");
  EXPECT_EQ(standings_with_waits(104, 150, 150),
            "step_time warned; collective_time warned; exposed_communication warned; ");
  EXPECT_EQ(standings_with_waits(100, 100, 150),
            "step_time passed; collective_time warned; exposed_communication passed; ");
}

JobGroup kernels(const std::string& op, const std::string& name) {
  JobGroup group{.kind = TaskKind::kernel, .op = op, .name = name, .count = 4};
  group.work = 1ms;
  return group;
}

using RefusalRule = void (*)(const JobSummary&, const JobSummary&);

std::string refused_by(RefusalRule refuse, const JobSummary& before, const JobSummary& now) {
  try {
    refuse(before, now);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CheckJob, AnotherJobIsRefused) {
  JobSummary before, other;
  before.groups = {kernels("aten::conv2d", "cudnn"), kernels("aten::relu", "relu")};
  other.groups = {kernels("aten::linear", "gemm"), kernels("aten::gelu", "gelu"),
                  kernels("aten::relu", "relu")};
  EXPECT_EQ(refused_by(refuse_other_job, before, other),
            "must be of the same job as the baseline; the two have 33 % of the time of kernels and "
            "33 % of the ops in common; give each job its own baseline (--bless)");
}

TEST(CheckJob, AChangedJobIsTheSame) {
  JobSummary before, faster = before;
  before.groups = {kernels("aten::conv2d", "cudnn"), kernels("aten::relu", "relu")};
  faster.groups = {kernels("aten::conv2d", "cudnn_half"), kernels("aten::relu", "relu_half")};
  EXPECT_EQ(likeness(before, faster), 1);  // The precision differs, but the ops are the same.
  JobSummary compiled;
  compiled.groups = {kernels("CompiledFunction", "triton_fused")};
  EXPECT_EQ(likeness(before, compiled), 0);
  JobGroup batch{.kind = TaskKind::copy_in, .name = "Memcpy HtoD", .count = 1};
  batch.bytes = Bytes{19'000'000};
  before.groups.push_back(batch), compiled.groups.push_back(batch);
  EXPECT_EQ(likeness(before, compiled), 1);  // It loads the same batches.
}

// A larger model of the same kind would count as noise of 3,000 %, which would hide any failure.
TEST(CheckJob, RecordingsOfOneBaselineAreOfAnUnchangedJob) {
  JobSummary before, repeat, larger;
  before.groups = {kernels("aten::linear", "gemm_64"), kernels("aten::relu", "relu")};
  repeat.groups = {kernels("aten::linear", "gemm_64"), kernels("aten::relu", "relu"),
                   kernels("aten::linear", "splitk")};
  repeat.groups.back().work = 300us;  // A library may choose another kernel now and then.
  larger.groups = {kernels("aten::linear", "gemm_256"), kernels("aten::relu", "relu")};
  EXPECT_EQ(refused_by(refuse_changed_job, before, repeat), "");
  EXPECT_EQ(refused_by(refuse_other_job, before, larger), "");
  EXPECT_EQ(refused_by(refuse_changed_job, before, larger),
            "must be a recording of the unchanged job; the two have 50 % of the time of kernels "
            "and 100 % of the ops in common, and all differences between the recordings of one "
            "baseline count as noise");
}

// Runs of 100, 110 and 105 with steady steps; 2.92 x 5 x sqrt(4 / 3) is one more's reach.
TEST(CheckRuns, SaysWhichChangeWouldShow) {
  const auto visible = [](const std::vector<Steps>& runs) {
    JobSummary now;
    now.figures["step_time"] = runs.front();
    return visible_change(baseline_of("step_time", runs), now).value();
  };
  const VisibleChange three = visible({{100, 100, 100}, {110, 110, 110}, {105, 105, 105}});
  EXPECT_NEAR(three.share, 2.92 * 5 * std::sqrt(4.0 / 3) / 105, 1e-9);
  EXPECT_EQ(three.recordings, 3U);
  EXPECT_FALSE(three.for_wanted.has_value());
  EXPECT_NE(visible_words(three).find("no number of recordings like these"), std::string::npos);
  // 10'000 and 10'080 differ by 0.56 %: 6.31 x 0.56 x sqrt(3 / 2) %.
  const VisibleChange two = visible({{10'000, 10'000}, {10'080, 10'080}});
  EXPECT_NEAR(two.share, 6.31 * 80 / std::sqrt(2.0) * std::sqrt(1.5) / 10'080, 1e-9);
  EXPECT_EQ(two.for_wanted, 28U);
  EXPECT_EQ(visible_words(two), "steps 4.3 % longer or more, by 2 recordings; 28 would show 1.0 %");
  const VisibleChange one = visible({{100, 102, 104, 98, 96}});
  EXPECT_GT(one.share, 0.02);
  EXPECT_LT(one.share, 0.09);
  EXPECT_NE(visible_words(one).find("--bless --add"), std::string::npos);
  EXPECT_FALSE(visible_change(baseline_of("kernels", {{1}}), JobSummary{}).has_value());
}

// The first row would be of the second recording, as 130 is nearest to its 128.
TEST(CheckRuns, AllRowsAreOfTheTypicalRecording) {
  CheckBaseline baseline;
  baseline.fail["step_time"] = parse_limit("5%", figure_entry("step_time"));
  const auto run = [](std::int64_t step, std::int64_t slowest) {
    return FigureSteps{{"step_time", {step, step, step}}, {"slowest_step", {slowest}}};
  };
  baseline.summary.runs = {run(100, 101), run(128, 129), run(120, 140)};
  baseline.summary.figures = baseline.summary.runs[0];
  JobSummary now;
  now.figures = {{"step_time", {130, 130, 130}}, {"slowest_step", {131}}};
  const std::vector<CheckedFigure> figures = judged_figures(baseline, now, {});
  EXPECT_EQ(figures.at(0).name, "step_time");
  EXPECT_EQ(figures.at(0).before, 120);
  EXPECT_EQ(figures.at(0).standing, CheckOutcome::passed);
  EXPECT_EQ(figures.at(0).lower, 10);
  EXPECT_EQ(figures.at(0).why, "another recording of the baseline has 128 ns");
  EXPECT_EQ(figures.at(1).name, "slowest_step");
  EXPECT_EQ(figures.at(1).before, 140);
}

}  // namespace
}  // namespace foretrace
