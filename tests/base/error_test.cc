#include "foretrace/error.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretrace {
namespace {

TEST(Error, CollectsPlacesOnItsWayUp) {
  try {
    within("amp.json", [] { within("workers", [] { throw Error("must be at least 1, got 0"); }); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "amp.json: workers: must be at least 1, got 0");
  }
}

TEST(Error, OfATraceStaysOne) {
  EXPECT_THROW(within("x.json", [] { throw TraceError("is empty"); }), TraceError);
}

TEST(Error, WithinHandsTheResultOn) {
  EXPECT_EQ(within("x", [] { return 7; }), 7);
}

TEST(Error, NamesTheNearestAlternative) {
  const std::vector<std::string> options = {"prefetch", "fused_optimizer", "amp"};
  EXPECT_EQ(did_you_mean("prefech", options), " (did you mean \"prefetch\"?)");
  EXPECT_EQ(did_you_mean("fused_optimiser", options), " (did you mean \"fused_optimizer\"?)");
  EXPECT_EQ(did_you_mean("pam", options), " (did you mean \"amp\"?)");
  EXPECT_EQ(did_you_mean("quantize", options), "");
}

TEST(Error, CountsEditsBetweenTexts) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("abc", "acb"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);
}

TEST(Check, SaysWhereItFailed) {
  EXPECT_DEATH(CHECK(1 + 1 == 3), "error_test.cc:[0-9]+: CHECK failed: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace foretrace
