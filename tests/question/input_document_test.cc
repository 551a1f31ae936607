#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/advice.h"
#include "foretrace/answer/input.h"

namespace foretrace {
namespace {

// A step takes 100ms, 60ms with all data cached, and 30ms with batches made on the device.
InputReport three_traces() {
  InputReport report;
  report.replayed = 100ms;
  report.without_loading = 40ms;
  report.without_copies = 35ms;
  report.stalls.step = 100ms;
  report.stalls.steps = 4;
  report.stalls.waiting = {.stall = 60ms, .hidden = 5ms};
  report.synthetic = 30ms;
  report.cached = 60ms;
  report.samples = 600;
  report.recorded_workers = 4;
  report.set = {.policy = "minio", .cached = 0.5};
  report.knows_cache = true;
  return report;
}

TEST(InputReport, DifferencesAreThoseOfTheThreePhases) {
  const nlohmann::json found = to_json(three_traces())["differential"];
  EXPECT_EQ(found["G"], 20000);
  EXPECT_EQ(found["P"], 10000);
  EXPECT_EQ(found["F"], 6000);
  EXPECT_EQ(found["F_not_overlapped"], 15000);
  EXPECT_EQ(found["prep_stall_ns"], 30000000);
  EXPECT_EQ(found["fetch_stall_ns"], 40000000);
}

TEST(InputReport, KnowsWhatWouldBeEnough) {
  const nlohmann::json found = to_json(three_traces())["differential"];
  EXPECT_EQ(found["workers_needed"], 8);
  // Half of the reads miss in 100ms; 0.3 may miss in 60ms, and 0.15 in 30ms.
  EXPECT_NEAR(found["cached_share_needed"], 0.7, 1e-6);
  EXPECT_NEAR(found["cached_share_for_training"], 0.85, 1e-6);
}

TEST(InputReport, NamesTheBottleneck) {
  InputReport report = three_traces();
  EXPECT_EQ(to_json(report)["bottleneck"], "reading");
  report.cached = 95ms;
  EXPECT_EQ(to_json(report)["bottleneck"], "preparation");
  report.synthetic = report.cached = 100ms;
  EXPECT_EQ(to_json(report)["bottleneck"], "training");
  report.synthetic = report.cached = std::nullopt;
  report.bound = {PathPart::input, 40ms};
  EXPECT_EQ(to_json(report)["bottleneck"], "loading");
  report.bound = {PathPart::host, 20ms};
  EXPECT_EQ(to_json(report)["bottleneck"], "training");
}

TEST(InputReport, SaysWhatElseBoundsAStep) {
  InputReport report = three_traces();
  report.synthetic = report.cached = std::nullopt;
  report.bound = {PathPart::host, 20ms};
  report.with_workers = 120ms;
  std::ostringstream out;
  write_text(document_of(report), out);
  EXPECT_TRUE(
      out.str().starts_with("100 ms a step; input costs 65.0 % of it, most of that loading; "
                            "it is bound by the host (20 ms without)\n"))
      << out.str();
  EXPECT_NE(out.str().find("\nNo workers   they do not help: a step would take 120 ms"),
            std::string::npos)
      << out.str();
}

TEST(InputReport, SaysWhenThereIsNothing) {
  InputReport report;
  report.replayed = report.without_loading = report.without_copies = 10ms;
  std::ostringstream out;
  write_text(document_of(report), out);
  EXPECT_EQ(out.str(),
            "10 ms a step; input costs less than 2 % of it\n\nThis trace neither loads nor copies "
            "input.\n");
}

}  // namespace
}  // namespace foretrace
