// The gate as a whole, on a recording: a guarded metric must not disappear unnoticed.

#include <gtest/gtest.h>

#include "foretrace/question/check.h"
#include "support/folder.h"

namespace foretrace {
namespace {

const std::string kSample = FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader4.pt.trace.json.gz";

Scenario as_recorded() {
  Scenario scenario;
  scenario.trace = kSample;
  return scenario;
}

/// A baseline as if memory events had been recorded, which the sample does not have.
CheckBaseline with_memory() {
  CheckBaseline baseline = bless(kSample, as_recorded(), {});
  baseline.summary.figures["peak_reserved"] = {1'000'000'000};
  baseline.fail["peak_reserved"] = parse_limit("5%", figure_entry("peak_reserved"));
  return baseline;
}

TEST(CheckGate, AnUnchangedJobPasses) {
  const CheckBaseline baseline = bless(kSample, as_recorded(), {});
  EXPECT_EQ(check(kSample, as_recorded(), baseline, {}).standing(), CheckOutcome::passed);
}

TEST(CheckGate, AnExportedJobIsTheSameJob) {
  const Folder folder;
  const std::string exported = folder / "exported.json.gz";
  predict(Job(kSample, {.keeps_traces = true}), as_recorded(), {.perfetto_path = exported});
  const CheckBaseline baseline = bless(kSample, as_recorded(), {});
  const CheckReport report = check(exported, as_recorded(), baseline, {});
  EXPECT_TRUE(report.same_structure);
  EXPECT_EQ(report.standing(), CheckOutcome::passed) << check_headline(report);
}

TEST(CheckGate, AFigureThatTheTraceNoLongerTellsIsUndecided) {
  const CheckReport report = check(kSample, as_recorded(), with_memory(), {});
  EXPECT_EQ(report.standing(), CheckOutcome::undecided);
  const std::string expected = "UNDECIDED: peak_reserved 1 GB, limit 5%; not in the trace; 1";
  EXPECT_EQ(check_headline(report).substr(0, expected.size()), expected);
}

TEST(CheckGate, WhatIsLeftOutOnPurposePasses) {
  CheckOptions options;
  options.fail["peak_reserved"] = parse_limit("off", figure_entry("peak_reserved"));
  EXPECT_EQ(check(kSample, as_recorded(), with_memory(), options).standing(), CheckOutcome::passed);
  CheckOptions lenient;
  lenient.undecided = CheckOutcome::passed;
  EXPECT_EQ(check(kSample, as_recorded(), with_memory(), lenient).standing(), CheckOutcome::passed);
}

TEST(CheckGate, ALimitOfAFigureThatTheBaselineLacksIsUndecided) {
  CheckBaseline baseline = bless(kSample, as_recorded(), {});
  baseline.summary.figures.erase("step_time");
  baseline.fail.erase("step_time");
  EXPECT_EQ(check(kSample, as_recorded(), baseline, {}).standing(), CheckOutcome::passed);
  CheckOptions options;
  options.fail["step_time"] = parse_limit("5%", figure_entry("step_time"));
  EXPECT_EQ(check(kSample, as_recorded(), baseline, options).standing(), CheckOutcome::undecided);
}

}  // namespace
}  // namespace foretrace
