#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kLine = R"(
    cpu:    L:launch 1, M:launch 1, N:launch 1, O:launch 1
    stream: "a conv" 4, "b relu" 2, "c conv" 4, "d relu" 2
    L -> "a conv"
    M -> "b relu"
    N -> "c conv"
    O -> "d relu"
)";

TEST(Substitute, OneKernelInThePlaceOfTwo) {
  EXPECT_EQ(simulated(kLine, R"({"use": "substitute", "rules": ["conv ; relu => x : max"]})"), R"(
cpu    |LN.......|
stream |.xxxxxxxx|
)");
  EXPECT_EQ(simulated(kLine, R"({"use": "substitute", "rules": ["conv ; relu => x : 0.5 * sum"]})"),
            R"(
cpu    |LN.....|
stream |.xxxxxx|
)");
  EXPECT_EQ(simulated(kLine, R"({"use": "substitute", "rules": ["conv ; relu => x : 1us"]})"), R"(
cpu    |LN.|
stream |.xx|
)");
}

TEST(Substitute, NothingInThePlaceOfOne) {
  EXPECT_EQ(simulated(kLine, R"({"use": "substitute", "rules": ["relu => nothing"]})"), R"(
cpu    |LN.......|
stream |.aaaacccc|
)");
}

TEST(Substitute, RulesGoOnFromWhatRulesMade) {
  EXPECT_EQ(simulated(kLine, R"({"use": "substitute",
                "rules": ["conv ; relu => x : max", "x ; x => y : 0.5 * sum"]})"),
            R"(
cpu    |L....|
stream |.yyyy|
)");
}

TEST(Substitute, OnlyBacktrackingPaysFirstAndGainsLater) {
  // A wider b costs 1us more, but only then can the convolution after it be joined.
  constexpr auto kRules = R"("rules": ["b relu => wide : 1.5 * sum", "wide ; conv => x : 2us"])";
  const std::string greedy = std::string(R"({"use": "substitute", "alpha": 1, )") + kRules + "}";
  const std::string patient = std::string(R"({"use": "substitute", "alpha": 1.2, )") + kRules + "}";
  EXPECT_EQ(simulated(kLine, greedy),
            "rules: none pays, or none matches kernels of \"where\" (kind kernel) that directly "
            "follow each other");
  EXPECT_EQ(simulated(kLine, patient), R"(
cpu    |LMO......|
stream |.aaaaxxdd|
)");
}

TEST(Substitute, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "substitute"})",
       "rules: must be given, such as [\"conv ; relu => conv_relu : max\"]"},
      {R"({"use": "substitute", "rules": ["conv"]})",
       "rules: [0]: must be a rule such as \"conv ; relu => conv_relu : max\", got \"conv\""},
      {R"({"use": "substitute", "rules": ["conv ; => x"]})",
       "rules: [0]: each pattern must be a part of a kernel's name"},
      {R"({"use": "substitute", "rules": ["conv => "]})",
       "rules: [0]: must name what it makes, or \"nothing\""},
      {R"({"use": "substitute", "rules": ["conv => x : often"]})",
       "rules: [0]: the duration must be sum, max, first, last or a time, got \"often\""},
      {R"({"use": "substitute", "rules": ["conv => x : -1 * sum"]})",
       "rules: [0]: the factor must be a number from 0 to 1000000, got \"-1\""},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kLine, transform), message) << transform;
  }
}

}  // namespace
}  // namespace foretrace
