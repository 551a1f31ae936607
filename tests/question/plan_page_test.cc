// The page of `plan`: its head is the answer, and its picture names the layouts.

#include <gtest/gtest.h>

#include <string>

#include "foretrace/answer/plan.h"
#include "support/page.h"

namespace foretrace {
namespace {

PlanRow row_of(const std::string& layout, Nanoseconds time, std::int64_t gigabytes) {
  return {.layout = layout,
          .time = time,
          .lower = time,
          .upper = time,
          .reserved = Bytes{gigabytes * 1'000'000'000},
          .utilization = .5,
          .tokens_per_second = 12'345,
          .cost = 6.5};
}

PlanReport plan_of() {
  PlanReport report;
  report.model = "tiny", report.machine = "a machine", report.currency = "USD";
  report.ranked = {row_of("dp=8,global_batch=64", 1s, 64)};
  report.front = {report.ranked[0], row_of("tp=8,global_batch=64", 4s, 1),
                  row_of("<pp>=8,global_batch=64", 8s, 8)};
  return report;
}

TEST(PlanPage, ItsHeadIsTheAnswer) {
  const std::string page = html_of(plan_of());
  EXPECT_NE(page.find("<h1>fastest: dp=8,global_batch=64: 1 s a step, between 1 s and 1 s, 64 GB "
                      "reserved, MFU 50.0 %, 12,345 tokens/s, 6.50 USD per 1,000 steps</h1>"),
            page.npos);
}

TEST(PlanPage, WhereNothingFitsTheHeadSaysWhatWasAsked) {
  PlanReport report = plan_of();
  report.ranked[0].fits = false;
  EXPECT_NE(html_of(report).find("<h1>tiny on a machine"), std::string::npos);
}

TEST(PlanPage, ALineLeadsAlongLayoutsThatNoOtherBeats) {
  const std::string page = html_of(plan_of());
  // From 1 to 64 GB and from 1 to 8 s, by factors; 8 s with 8 GB is beaten by 4 s with 1 GB.
  EXPECT_NE(page.find("points=\"0.0,333.3 1000.0,1000.0 \""), page.npos);
  EXPECT_NE(page.find("cx=\"50.00%\" cy=\"0.00%\" r=\"4\"><title>&lt;pp&gt;=8: 8 s a step, 8 GB"),
            page.npos);
  EXPECT_NE(page.find(">dp=8</text>"), page.npos);
  EXPECT_NE(page.find(">tp=8</text>"), page.npos);
  EXPECT_EQ(page.find("<pp>"), page.npos);
}

TEST(PlanPage, YourOwnLayoutStandsOut) {
  PlanReport report = plan_of();
  report.ranked.push_back(row_of("pp=2", 2s, 8));
  report.ranked.back().role = "yours";
  report.ranked.push_back(row_of("dp=1", 2s, 640));
  report.ranked.back().role = "plain data parallelism", report.ranked.back().fits = false;
  const std::string page = html_of(report);
  EXPECT_NE(page.find(">yours</text>"), page.npos);
  EXPECT_EQ(page.find(">plain data parallelism</text>"), page.npos);
}

}  // namespace
}  // namespace foretrace
