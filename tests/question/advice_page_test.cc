// The picture of `advise`: what suggestions save of a step, with intervals, and the two limits.

#include <gtest/gtest.h>

#include <string>

#include "foretrace/answer/advice.h"
#include "support/page.h"

namespace foretrace {
namespace {

Advice advice_of(const std::string& goal) {
  Advice advice;
  advice.measured = advice.step_time = 98ms;
  Suggestion one;
  one.use = "<amp>", one.goal = goal, one.recommended = true;
  one.step_time = 49ms, one.lower = 24500us, one.upper = 73500us, one.gain = 49ms;
  advice.suggestions = {one};
  AdviceCeiling ceiling;
  ceiling.name = "all", ceiling.step_time = 9800us;
  advice.ladder = {ceiling};
  return advice;
}

std::string page_of(const Advice& advice) { return html_of(document_of(advice, true)); }

TEST(AdvicePage, BarsShowWhatIsLeftOfAStepAndItsInterval) {
  const std::string page = page_of(advice_of("time"));
  // A step of 98 ms takes 98 % of the width.
  for (const char* drawn :
       {"class=\"kept\" x=\"0.000%\" y=\"0\" width=\"49.000%\"",
        "class=\"saved\" x=\"49.000%\" y=\"0\" width=\"49.000%\"",
        "<line x1=\"24.500%\" x2=\"73.500%\"", "<title>between 24.5 ms and 73.5 ms</title>",
        "<line x1=\"98.000%\" x2=\"98.000%\"", "<line x1=\"9.800%\" x2=\"9.800%\"",
        "now: 98 ms</span>",
        "at best, while kernels stay as they are: 9.8 ms; other or faster kernels beat that</span>",
        "49 ms (-50.0 %)</span>"}) {
    EXPECT_NE(page.find(drawn), page.npos) << drawn;
  }
  EXPECT_EQ(page.find("<amp>"), page.npos);
}

TEST(AdvicePage, TimesOfLargerBatchesAreThoseOfAsManySamples) {
  Advice advice = advice_of("throughput");
  Suggestion& one = advice.suggestions[0];
  // Twice the samples in 98 ms: 49 ms for as many as now.
  one.samples = 2, one.step_time = 98ms, one.lower = 49ms, one.upper = 196ms;
  const std::string page = page_of(advice);
  EXPECT_NE(page.find("class=\"kept\" x=\"0.000%\" y=\"0\" width=\"49.000%\""), page.npos);
  EXPECT_NE(page.find("<line x1=\"24.500%\" x2=\"98.000%\""), page.npos);
}

TEST(AdvicePage, WithoutSuggestionsThereIsNoPicture) {
  Advice advice = advice_of("time");
  advice.suggestions[0].recommended = false;
  EXPECT_EQ(page_of(advice).find("class=\"bars\""), std::string::npos);
}

}  // namespace
}  // namespace foretrace
