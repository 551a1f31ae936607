#include "question/advise/candidates.h"

#include <gtest/gtest.h>

#include "foretrace/answer/advice.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/advise.h"
#include "question/recorded.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// Six steps of 30: "a slow" and "b fast" one behind the other, "c beside" on another stream, each
/// behind all of the step before.
Inference three_kernels() {
  std::string text, one = "one: ", two = "two: ", waits;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i), step = " {step=" + n + "}", comma = i == 0 ? "" : ", ";
    text += "@step ProfilerStep#" + n + "\n";
    one += comma + "a" + n + "=\"a slow\" 20" + step + ", b" + n + "=\"b fast\" 10" + step;
    two += comma + "c" + n + "=\"c beside\" 25" + step;
    if (i == 0) continue;
    const std::string before = std::to_string(i - 1);
    waits += "b" + before + " -> c" + n + "\nc" + before + " -> a" + n + "\n";
  }
  return recorded_as(text + one + "\n" + two + "\n" + waits);
}

std::vector<KernelCandidate> judged(const std::string& csv) {
  const Folder folder;
  const Inference inference = three_kernels();
  return judge_candidates(inference.graph, read_candidates(folder.write("some.csv", csv)));
}

TEST(Candidates, AreRankedByWhatAStepGains) {
  const std::vector<KernelCandidate> found =
      judged("name,factor\nc beside,0.1\nb fast,0.7\n\"a slow\",0.5\nfast,2\n");
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].name, "a slow");
  EXPECT_EQ(found[0].work, 20us);
  EXPECT_EQ(found[0].step_time, 25us) << "then the other stream is in the way";
  EXPECT_EQ(found[1].name, "b fast");
  EXPECT_EQ(found[1].step_time, 27us);
  EXPECT_EQ(found[2].name, "c beside");
  EXPECT_EQ(found[2].step_time, 30us) << "it runs beside the others";
  EXPECT_EQ(found[3].line, 5);
  EXPECT_EQ(found[3].step_time, 40us);
}

TEST(Candidates, AnswerInPlaceOfEverythingElse) {
  const Folder folder;
  const std::string file = folder.write("some.csv", "name,factor\nslow,0.5\n");
  const Advice advice = advise(three_kernels(), {.candidates = file});
  EXPECT_EQ(advice.candidates.size(), 1U);
  EXPECT_TRUE(advice.ladder.empty());
  EXPECT_TRUE(advice.suggestions.empty());
  EXPECT_EQ(to_json(advice)["candidates"][0]["gain_ns"], 5'000);
}

TEST(Candidates, SayWhatIsWrong) {
  const auto message = [](const std::string& csv) -> std::string {
    try {
      judged(csv);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("kernel,factor\na,1\n")
                .find(":1: the columns must be name,factor, got "
                      "'kernel,factor'"),
            std::string::npos);
  EXPECT_NE(message("name,factor\na,fast\n")
                .find(":2: factor: must be above 0 and at most 1000, "
                      "got 'fast'"),
            std::string::npos);
  EXPECT_NE(message("name,factor\na,0\n").find("got '0'"), std::string::npos);
  EXPECT_NE(message("name,factor\n,1\n").find("must be NAME,FACTOR, got ',1'"), std::string::npos);
  EXPECT_NE(message("name,factor\n").find("has no candidates"), std::string::npos);
  EXPECT_NE(message("name,factor\na,1\nnone,1\n").find("line 3: no kernel has \"none\""),
            std::string::npos);
  EXPECT_THROW(read_candidates("/nowhere/at.csv"), Error);
  EXPECT_THROW(
      advise(three_kernels(), {.until = "step_time <= 1ms", .candidates = "/nowhere/at.csv"}),
      Error);
}

}  // namespace
}  // namespace foretrace
