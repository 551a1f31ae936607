#include "foretrace/question/check.h"

#include <gtest/gtest.h>

#include <fstream>

#include "foretrace/error.h"
#include "question/check/job/changes.h"
#include "question/check/job/job_summary.h"
#include "question/check/job/words.h"

namespace foretrace {
namespace {

template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

Limit limit(std::string_view metric, std::string_view text) {
  return parse_limit(text, figure_entry(metric));
}

std::string judged(std::string_view metric, const std::vector<std::int64_t>& before,
                   const std::vector<std::int64_t>& after, std::string_view text) {
  const FigureEntry& entry = figure_entry(metric);
  return std::string(to_string(judge(step_change(entry, before, after), entry.less_is_worse,
                                     figure_value(entry, before), limit(metric, text))));
}

TEST(CheckLimit, IsAShareAnAmountOrBoth) {
  EXPECT_EQ(limit("step_time", "5%").relative, 0.05);
  EXPECT_EQ(limit("peak_reserved", "200MB").absolute, 200'000'000);
  EXPECT_EQ(limit("syncs", "+0").absolute, 0);
  EXPECT_EQ(limit("launches", "+10").absolute, 10);
  EXPECT_EQ(limit("host_time", "5%+2ms").relative, 0.05);
  EXPECT_EQ(limit("host_time", "5%+2ms").absolute, 2'000'000);
  EXPECT_EQ(limit("overlap", "-5%").absolute, 50'000);
  EXPECT_TRUE(limit("kernels", "off").is_off);
}

TEST(CheckLimit, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] { parse_named_limit("step_tim:5%"); }).substr(0, 60),
            "there is no metric 'step_tim' (did you mean \"step_time\"?); t");
  EXPECT_EQ(error_of([] { parse_named_limit("step_time"); }),
            "must be METRIC:LIMIT, such as step_time:5%, got 'step_time'");
  EXPECT_EQ(error_of([] { parse_named_limit("step_time:-5%"); }),
            "a limit is how much worse the metric may become, so step_time takes +5%, got '-5%'");
  EXPECT_EQ(error_of([] { parse_named_limit("overlap:+5%"); }),
            "a limit is how much worse the metric may become, so overlap takes -5%, got '+5%'");
  EXPECT_EQ(error_of([] { parse_named_limit("syncs:many"); }),
            "must be a limit such as 5%, +10, 200MB, 2ms or 5%+2ms, or off: must be a number, got "
            "'many'");
  EXPECT_NE(error_of([] { parse_named_limit("step_time:"); }), "no error");
  EXPECT_NE(error_of([] { parse_named_limit("step_time:5"); }), "no error");
  EXPECT_NE(error_of([] { parse_named_limit("syncs:nan%"); }), "no error");
  EXPECT_NE(error_of([] { parse_named_limit("syncs:5%+"); }), "no error");
  EXPECT_NE(error_of([] { parse_named_limit("syncs:1+1+1"); }), "no error");
  EXPECT_NE(error_of([] { parse_named_limit("step_time:9223372036s"); }), "no error");
  EXPECT_NE(error_of([] { parse_named_limit("step_time:9223372036s+9223372036s"); }), "no error");
  EXPECT_NE(error_of([] { parse_named_limit("syncs:1e300"); }), "no error");
}

TEST(CheckJudge, IsSureOnlyWhereTheWholeIntervalIsBeyondTheLimit) {
  const std::vector<std::int64_t> quiet = {1000, 1001, 1002, 1003, 1004};
  EXPECT_EQ(judged("step_time", quiet, quiet, "5%"), "passed");
  EXPECT_EQ(judged("step_time", quiet, {1100, 1101, 1102, 1103, 1104}, "5%"), "failed");
  EXPECT_EQ(judged("step_time", quiet, {1020, 1021, 1022, 1023, 1024}, "5%"), "passed");
  EXPECT_EQ(judged("step_time", quiet, {1030, 1040, 1055, 1060, 1080}, "5%"), "undecided");
}

// The change is certain, but not on which side of the limit it is.
TEST(CheckJudge, AChangeThatMayBeBeyondTheLimitIsUndecided) {
  const std::vector<std::int64_t> quiet = {1000, 1001, 1002, 1003, 1004};
  const std::vector<std::int64_t> worse = {1020, 1030, 1040, 1060, 1080};
  const StepChange change = step_change(figure_entry("step_time"), quiet, worse);
  EXPECT_GT(change.lower, 0);
  EXPECT_LT(change.change, 50);
  EXPECT_GT(change.upper, 50);
  EXPECT_EQ(judged("step_time", quiet, worse, "5%"), "undecided");
  EXPECT_EQ(judged("overlap", {800'000, 801'000, 802'000, 803'000, 804'000},
                   {720'000, 740'000, 770'000, 780'000, 790'000}, "-5%"),
            "undecided");
}

// Three steps show only that there is a change; it is a hundredth of the limit.
TEST(CheckJudge, AChangeThatIsSureButTinyPasses) {
  EXPECT_EQ(
      judged("overlap_possible", {800'000, 800'000, 800'000}, {799'500, 780'000, 600'000}, "-5%"),
      "passed");
}

TEST(CheckJudge, VariationWithoutAChangePasses) {
  EXPECT_EQ(judged("step_time", {900, 1000, 1100, 950, 1050}, {910, 1010, 1110, 940, 1040}, "5%"),
            "passed");
}

TEST(CheckJudge, CountsThatDifferFromStepToStepAreHeldAgainstTheSameStep) {
  EXPECT_EQ(judged("syncs", {10, 40}, {11, 41}, "+0"), "failed");
  EXPECT_EQ(judged("syncs", {10, 40}, {10, 40}, "+0"), "passed");
  EXPECT_EQ(judged("kernels", {1000, 1040, 1000}, {1040, 1000, 1040}, "+0"), "undecided");
}

TEST(CheckJudge, OneValueHasFivePercentOfDoubt) {
  EXPECT_EQ(judged("step_time", {1000}, {1080}, "5%"), "undecided");
  EXPECT_EQ(judged("step_time", {1000}, {1110}, "5%"), "failed");
  EXPECT_EQ(judged("syncs", {3}, {4}, "+0"), "failed");
}

TEST(CheckJudge, KnowsWhichWayIsWorse) {
  EXPECT_EQ(judged("overlap", {800'000, 800'000}, {700'000, 700'000}, "-5%"), "failed");
  EXPECT_EQ(judged("overlap", {800'000, 800'000}, {900'000, 900'000}, "-5%"), "passed");
  EXPECT_EQ(judged("syncs", {3}, {2}, "+0"), "passed");
}

// From the tables of Mann and Whitney: with 4 and 4 values the rank sum statistic is at most 1 in 2
// of 70 orders, so one difference may be cut off at each end.
TEST(CheckJudge, TheIntervalIsThatOfRankSums) {
  const StepChange change =
      step_change(figure_entry("step_time"), {0, 100, 200, 300}, {1000, 1010, 1020, 1030});
  std::vector<std::int64_t> differences;
  for (const std::int64_t then : {0, 100, 200, 300}) {
    for (const std::int64_t now : {1000, 1010, 1020, 1030}) differences.push_back(now - then);
  }
  std::sort(differences.begin(), differences.end());
  EXPECT_EQ(change.lower, differences[1]);
  EXPECT_EQ(change.upper, differences[14]);
}

TEST(CheckNames, LeaveOutWhatDiffersBetweenBuilds) {
  EXPECT_EQ(plain_name("void at::native::(anonymous namespace)::f<float, 4>(int, T<3>)", true),
            "at::native::f");
  EXPECT_EQ(plain_name("volta_sgemm_128x64_tn", true), "volta_sgemm_#x#_tn");
  EXPECT_EQ(plain_name("aten::conv2d", false), "aten::conv2d");
  EXPECT_EQ(plain_name("ProfilerStep#12", false), "ProfilerStep#");
  EXPECT_EQ(plain_name("/home/me/train.py(88): main", false), "train.py: main");
  EXPECT_EQ(plain_name("<built-in method to of Tensor object at 0x7f12ab>", false),
            "<built-in method to of Tensor object at 0x>");
  EXPECT_EQ(plain_name("operator<", true), "operator<");
}

TEST(CheckLines, ThatMovedAsAWholeAreNotNew) {
  JobGroup before, after;
  before.lines = {{80, 1}, {90, 2}};
  after.lines = {{92, 1}, {100, 1}, {102, 2}};
  EXPECT_EQ(new_lines(before, after), std::vector<int>{100});
  after.lines = {{92, 1}, {102, 2}};
  EXPECT_EQ(new_lines(before, after), std::vector<int>{});
  EXPECT_EQ(new_lines({}, after), (std::vector<int>{92, 102}));
}

JobGroup group(TaskKind kind, const std::string& op, const std::string& name, std::int64_t count,
               Nanoseconds work) {
  JobGroup one;
  one.kind = kind, one.op = op, one.name = name, one.count = count, one.work = work;
  return one;
}

JobSummary job_of(std::vector<JobGroup> groups) {
  JobSummary job;
  job.groups = std::move(groups);
  return job;
}

TEST(CheckChanges, WorkOfAnotherNameAtTheSamePlaceIsAReplacement) {
  const WorkChanges found =
      work_changes(job_of({group(TaskKind::kernel, "aten::mm", "half_gemm", 4, 400us)}),
                   job_of({group(TaskKind::kernel, "aten::mm", "float_gemm", 4, 900us)}));
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes[0].replaced, "half_gemm");
  EXPECT_EQ(found.changes[0].added(), 500us);
}

/// Eight places with a kernel each, of this shape.
JobSummary eight_kernels(Nanoseconds each, const std::string& shape) {
  JobSummary job;
  for (int i = 0; i < 8; ++i) {
    const std::string op = "op" + std::to_string(i);
    job.groups.push_back(group(TaskKind::kernel, op, "k", 1, each));
    KernelTimes one{.name = "k", .key = op + shape, .count = 1, .each = each};
    one.least = one.most = each, one.of_steps = {each.count()};
    job.kernels.push_back(one);
  }
  return job;
}

TEST(CheckChanges, WhatIsSlowerEverywhereHasNoPlace) {
  const WorkChanges found = work_changes(eight_kernels(100us, "a"), eight_kernels(120us, "a"));
  ASSERT_EQ(found.general.size(), 1u);
  EXPECT_NEAR(found.general[0].factor, 1.2, 1e-9);
  EXPECT_TRUE(found.changes.empty());
}

TEST(CheckChanges, KernelsOfOtherShapesSayNothingAboutTheDevice) {
  const WorkChanges found = work_changes(eight_kernels(100us, "a"), eight_kernels(120us, "b"));
  EXPECT_TRUE(found.general.empty());
  EXPECT_EQ(found.changes.size(), 8u);
}

/// Where more work is than before, as "more name at op"; sorted.
std::vector<std::string> new_work(const JobSummary& before, const JobSummary& after) {
  std::vector<std::string> found;
  for (const WorkChange& change : work_changes(before, after).changes) {
    if (change.more() > 0 || change.added() > 0ns)
      found.push_back(std::to_string(change.more()) + " " + change.after.name + " at " + change.op);
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(CheckChanges, WorkThatMovedIsNotNew) {
  const auto copies = [](const std::string& op, std::int64_t count, std::int64_t each) {
    JobGroup some = group(TaskKind::copy_on_device, op, "Memcpy DtoD", count, count * 10us);
    some.bytes = Bytes{count * each};
    return some;
  };
  const JobSummary before = job_of({copies("aten::cat", 5, 1000), copies("aten::stack", 3, 10),
                                    group(TaskKind::kernel, "aten::mm", "gemm", 13, 13ms),
                                    group(TaskKind::host, "aten::a", "", 30, 9ms),
                                    group(TaskKind::sync, "aten::item", "synchronize", 2, 2us)});
  const auto after = [&](std::int64_t more) {
    return job_of({copies("aten::to", 5 + more, 1000), copies("aten::add", 3, 10),
                   group(TaskKind::kernel, "aten::linear", "gemm", 13, 13ms),
                   group(TaskKind::host, "aten::b", "", 30, 9ms),
                   group(TaskKind::sync, "aten::to", "synchronize", 2, 2us)});
  };
  EXPECT_EQ(new_work(before, after(0)), std::vector<std::string>{});
  EXPECT_EQ(new_work(before, after(2)), std::vector<std::string>{"2 Memcpy DtoD at aten::to"});
  // Sizes that are mixed otherwise than before.
  EXPECT_EQ(new_work(job_of({copies("aten::cat", 5, 1000), copies("aten::stack", 3, 10)}),
                     job_of({copies("aten::to", 8, 628)})),
            std::vector<std::string>{});
}

// Five of six stay, and all take half as long again.
TEST(CheckChanges, WorkThatMovedAndBecameSlowerIsSlower) {
  const WorkChanges found =
      work_changes(job_of({group(TaskKind::kernel, "aten::mm", "gemm", 6, 6ms)}),
                   job_of({group(TaskKind::kernel, "aten::mm", "gemm", 5, 7500us),
                           group(TaskKind::kernel, "aten::linear", "gemm", 1, 1500us)}));
  ASSERT_EQ(found.changes.size(), 2u);
  EXPECT_EQ(found.changes[0].added(), 2500us);
  EXPECT_EQ(found.changes[1].added(), 500us);
  EXPECT_EQ(change_words(found.changes[1]), "gemm slower, some of it moved: 1 ms -> 1.5 ms");
}

TEST(CheckChanges, AnotherKernelOfTheNameIsNotOneThatMoved) {
  EXPECT_EQ(new_work(job_of({group(TaskKind::kernel, "aten::mul", "elementwise", 2, 4us)}),
                     job_of({group(TaskKind::kernel, "aten::norm", "elementwise", 2, 4ms)})),
            std::vector<std::string>{"2 elementwise at aten::norm"});
}

// A graph of calls hides the ops between, and a compiler merges kernels.
TEST(CheckChanges, OtherKernelsOfTheOuterOpReplaceThoseThatAreGone) {
  const JobSummary before = job_of({group(TaskKind::kernel, "Region/aten::mm", "gemm", 4, 4ms),
                                    group(TaskKind::kernel, "Region/aten::relu", "relu", 4, 1ms)});
  EXPECT_EQ(new_work(before, job_of({group(TaskKind::kernel, "Region", "gemm_relu", 4, 5ms)})),
            std::vector<std::string>{});
  const auto slower =
      work_changes(before, job_of({group(TaskKind::kernel, "Region", "gemm_relu", 4, 7ms)}));
  ASSERT_EQ(slower.changes.size(), 1u);
  EXPECT_EQ(change_words(slower.changes[0]), "gemm_relu in place of gemm, relu: 5 ms -> 7 ms");
  EXPECT_EQ(slower.changes[0].added(), 2ms);
}

// Work whose place differs from step to step is at none of its places in most.
TEST(CheckChanges, WorkThatOnlySeemsToBeGoneMakesUpForNothing) {
  JobSummary before = job_of({group(TaskKind::kernel, "aten::mul", "elementwise", 40, 4ms)});
  JobSummary after = job_of({group(TaskKind::kernel, "aten::add", "elementwise", 3, 300us)});
  before.figures["kernels"] = {40}, after.figures["kernels"] = {43};
  EXPECT_EQ(new_work(before, after), std::vector<std::string>{"3 elementwise at aten::add"});
  after.figures["kernels"] = {3};
  EXPECT_EQ(new_work(before, after), std::vector<std::string>{});
  EXPECT_EQ(new_work(job_of({}), job_of({after.groups})).size(), 1u);
  before.groups.clear(), before.figures["kernels"] = {3};
  EXPECT_EQ(new_work(before, after), std::vector<std::string>{});
}

WorkChange change(const JobGroup& before, const JobGroup& after) {
  WorkChange one;
  one.before = before, one.after = after, one.kind = after.kind, one.op = after.op;
  return one;
}

TEST(CheckWords, OneLongCallOfManyIsNoMean) {
  JobGroup before = group(TaskKind::launch, "aten::mm", "cudaLaunchKernel", 110, 550us),
           after = before;
  before.longest = 12us;
  after.work = 3540us, after.longest = 3ms;
  EXPECT_EQ(change_words(change(before, after)),
            "one of 110 cudaLaunchKernel slower: 12 us -> 3 ms");
  after.longest = 60us;
  EXPECT_EQ(change_words(change(before, after)), "cudaLaunchKernel slower: 5 us -> 32.18 us x 110");
}

TEST(CheckWords, PiecesOfHostWorkAreNotCounted) {
  const JobGroup before = group(TaskKind::host, "aten::mm", "", 39, 1ms);
  EXPECT_EQ(change_words(change(before, group(TaskKind::host, "aten::mm", "", 40, 4ms))),
            "host work slower: 1 ms -> 4 ms");
  EXPECT_EQ(change_words(change({}, group(TaskKind::host, "my::op", "", 1, 3ms))),
            "new host work: 3 ms");
}

// As much of the work runs beside kernels as before; only the added work does not.
TEST(CheckWords, WhatBecomesLongerLosesNoOverlap) {
  JobGroup before = group(TaskKind::collective, "", "nccl", 2, 10ms), after = before;
  before.hidden = 9800us;
  after.work = 15ms, after.hidden = 11ms;
  EXPECT_EQ(change_words(change(before, after)), "nccl slower: 5 ms -> 7.5 ms x 2");
  after.work = 10ms, after.hidden = 1ms;
  EXPECT_EQ(change_words(change(before, after)),
            "lost overlap: nccl hidden behind kernels 98 % -> 10 %");
}

TEST(CheckChanges, LaunchesThatAllTakeLongerAreOneChange) {
  JobSummary before, after;
  for (const char* op : {"a", "b", "c", "d", "e", "f"}) {
    before.groups.push_back(group(TaskKind::host, op, "", 1, 500us));
    before.groups.push_back(group(TaskKind::launch, op, "cudaLaunchKernel", 10, 50us));
    after.groups.push_back(group(TaskKind::host, op, "", 1, 500us));
    after.groups.push_back(group(TaskKind::launch, op, "cudaLaunchKernel", 10, 100us));
  }
  const WorkChanges found = work_changes(before, after);
  ASSERT_EQ(found.general.size(), 1u);
  EXPECT_EQ(general_words(found.general[0]),
            "launch calls take 2.00 times as long throughout, not in one place: the driver, or a "
            "tool that follows its calls");
  EXPECT_TRUE(found.changes.empty());
}

TEST(CheckChanges, LoadingIsOneChangeWhereverItIs) {
  JobSummary before, after;
  for (const char* op : {"aten::stack", "aten::to", "aten::div"}) {
    before.groups.push_back(group(TaskKind::input, op, "", 1, 10ms));
    after.groups.push_back(group(TaskKind::input, op, "", 1, 13ms));
  }
  const WorkChanges found = work_changes(before, after);
  EXPECT_TRUE(found.general.empty());
  const std::vector<WorkChange> merged = marked_changes(before, found.changes);
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(change_words(merged[0]), "loading slower: 30 ms -> 39 ms");
}

CheckBaseline small_baseline() {
  CheckBaseline baseline;
  baseline.scenario = "{\"version\":1}";
  baseline.tool = "0.1.0";
  baseline.summary.figures["step_time"] = {100, 101};
  baseline.fail["step_time"] = limit("step_time", "5%");
  JobGroup one = group(TaskKind::kernel, "aten::mm", "gemm", 4, 400us);
  one.file = "train.py", one.function = "main", one.lines = {{88, 4}};
  baseline.summary.groups = {one};
  MemoryGroup held;
  held.op = "aten::mm", held.peak = Bytes{512};
  baseline.summary.memory = {held};
  baseline.fingerprint = structure_fingerprint(baseline.summary);
  return baseline;
}

TEST(CheckChanges, OneSlowKernelStandsOutInAStepThatHidesIt) {
  JobSummary before;
  before.figures["step_time"] = {100'000'000};
  JobGroup kernel{.kind = TaskKind::kernel, .op = "aten::gelu", .name = "gelu", .count = 4};
  kernel.work = kernel.least = 1ms, kernel.most = 1100us;
  before.groups = {kernel};
  const auto stands_out = [&](Nanoseconds work, Nanoseconds least, std::int64_t count) {
    JobGroup now = kernel;
    now.work = work, now.least = least, now.most = work, now.count = count;
    const auto changes = marked_changes(before, work_changes(before, job_of({now})).changes);
    return std::any_of(changes.begin(), changes.end(),
                       [](const WorkChange& change) { return change.stands_out; });
  };
  EXPECT_TRUE(stands_out(2ms, 1900us, 4));
  EXPECT_FALSE(stands_out(1200us, 1200us, 4));  // No more than runs differ.
  EXPECT_FALSE(stands_out(2ms, 1ms, 4));        // No more than steps differ.
  EXPECT_FALSE(stands_out(2ms, 2ms, 8));  // The number of pieces already shows the additional work.
  before.figures["step_time"] = {1'000'000'000};
  EXPECT_FALSE(stands_out(2ms, 2ms, 4));  // Only a thousandth of the step.
}

TEST(CheckChanges, PlacesCanBeLeftAside) {
  JobSummary summary;
  summary.groups = {{.kind = TaskKind::copy_in, .op = "a", .name = "copy", .count = 1, .work = 2us},
                    {.kind = TaskKind::copy_in, .op = "b", .name = "copy", .count = 2, .work = 3us},
                    {.kind = TaskKind::kernel, .op = "b", .name = "copy", .count = 1, .work = 1us}};
  const JobSummary anywhere = at_any_place(summary);
  ASSERT_EQ(anywhere.groups.size(), 2U);
  EXPECT_EQ(anywhere.groups[1].count, 3);
  EXPECT_EQ(anywhere.groups[1].work, 5us);
  EXPECT_EQ(anywhere.groups[1].name, "copy");
  EXPECT_EQ(anywhere.groups[1].op, "");
}

TEST(CheckBaselineFile, ReadsWhatItWrites) {
  const std::string text = write_baseline(small_baseline());
  EXPECT_EQ(write_baseline(parse_baseline_text(text)), text);
}

TEST(CheckBaselineFile, SaysFirstWhatItIsAndLastHowLong) {
  const std::string text = write_baseline(small_baseline());
  EXPECT_NE(text.find(R"({"kind":"kernel","op":"aten::mm","file":"train.py","function":"main",)"
                      R"("name":"gemm","lines":[[88,4]],"count":4,"work_ns":400000})"),
            std::string::npos)
      << text;
}

TEST(CheckBaselineFile, SaysWhatIsWrong) {
  const std::string good = write_baseline(small_baseline());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return error_of([&] { parse_baseline_text(text); });
  };
  EXPECT_EQ(with("\"model\": 1", "\"model\": 7"),
            "must be made by model 1, got model 7 of foretrace 0.1.0, which cannot be compared; "
            "create it anew with --bless");
  EXPECT_EQ(
      with("foretrace.baseline/2", "other"),
      "must be a baseline (\"schema\": \"foretrace.baseline/2\"), as check --bless writes it");
  EXPECT_EQ(with("[100,101]", "[]"), "metrics: step_time: steps: must not be empty");
  EXPECT_EQ(with("[100,101]", "\"x\""), "metrics: step_time: steps: must be a list");
  EXPECT_EQ(with("\"detail\": 0", "\"detail\": 9"), "detail: must be from 0 to 4, got 9");
  EXPECT_EQ(with("\"kind\":\"kernel\",", ""), "work[0]: must have a key \"kind\"");
  EXPECT_EQ(with("\"kind\":\"kernel\",", "\"kind\":\"kernal\","),
            "work[0]: kind: must be a kind of work, got 'kernal' (did you mean \"kernel\"?)");
  EXPECT_EQ(with("\"work_ns\":400000", "\"work_ns\":9000000000000000000"),
            "work[0]: must be from 0 to 10^18, got 9000000000000000000");
  EXPECT_EQ(with("\"work_ns\":400000", "\"work_ns\":900000000000000000"),
            "its work and memory must add up to at most 10^17");
  EXPECT_EQ(with("[100,101]", "[100,-101]"),
            "metrics: step_time: must be from 0 to 10^18, got -101");
  EXPECT_EQ(with("[100,101]", "[100,1e300]"),
            "metrics: step_time: steps: must be whole numbers, got 1e+300");
  EXPECT_EQ(with("\"count\":4", "\"count\":1e300"),
            "work[0]: count: must be a whole number, got 1e+300");
  EXPECT_NE(error_of([] { parse_baseline_text("{"); }), "no error");
  EXPECT_NE(error_of([] { parse_baseline_text("[]"); }), "no error");
}

}  // namespace
}  // namespace foretrace
