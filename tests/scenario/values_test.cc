#include "scenario/values.h"

#include <gtest/gtest.h>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// The values, separated by spaces, or the message of the Error.
std::string values(std::string_view text, bool whole = true) {
  try {
    std::string all;
    for (const std::string& value : read_values(text, whole).listed)
      all += (all.empty() ? "" : " ") + value;
    return all;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Values, ListsAndRanges) {
  EXPECT_EQ(values("1,2,4"), "1 2 4");
  EXPECT_EQ(values("[1:2,3:4],x"), "[1:2,3:4] x");
  EXPECT_EQ(values("0..3"), "0 1 2 3");
  EXPECT_EQ(values("0..1/4", false), "0 0.25 0.5 0.75 1");
  EXPECT_EQ(values("0..2/4"), "0 1 2");
  EXPECT_EQ(values("8..64/+8"), "8 16 24 32 40 48 56 64");
  EXPECT_EQ(values("8..60/+20"), "8 28 48");
  EXPECT_EQ(values("1..100/x4"), "1 4 16 64");
  EXPECT_EQ(values("0.1..0.5/+0.1", false), "0.1 0.2 0.3 0.4 0.5");
  EXPECT_EQ(values("8GB..16GB/+4GB"), "8GB 12GB 16GB");
  EXPECT_EQ(values("8..64/x1"), "must go up by /+ an amount or /x a factor, got \"1\"");
  EXPECT_EQ(values("8GB..16GB/2", false), "8GB 12GB 16GB");
  EXPECT_EQ(values("1GB/s..2GB/s/2", false), "1GB/s 1.5GB/s 2GB/s");
  EXPECT_EQ(values("1..4", false), "1 2 3 4");
  EXPECT_EQ(values("0..1", false), "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1");
  EXPECT_EQ(values("1GB..20GB/10", false),
            "1GB 2.9GB 4.8GB 6.7GB 8.6GB 10.5GB 12.4GB 14.3GB 16.2GB 18.1GB 20GB");
  EXPECT_EQ(values("0..1000"), "0 100 200 300 400 500 600 700 800 900 1000");
}

TEST(Values, SaysWhatIsWrong) {
  EXPECT_EQ(values("1,,2"), "must be values such as 1,2,4 or a range such as 0..16");
  EXPECT_EQ(values("4..1"), "must have the smaller end first");
  EXPECT_EQ(values("1GB..2MB"), "must have one unit at both ends, got \"GB\" and \"MB\"");
  EXPECT_EQ(values("a..b"),
            "must be a range of quantities such as 0..16 or 1GB/s..8GB/s at both ends, got \"a\"");
  EXPECT_EQ(values("0..1/0", false), "must have from 1 to 10000 steps, got 0");
}

TEST(Values, TheMiddleOfTwoNeighboursIsNoneOfWholeNumbers) {
  const Values whole = read_values("0..100", true);
  EXPECT_EQ(midpoint(whole, "10", "20"), "15");
  EXPECT_EQ(midpoint(whole, "10", "11"), "");
  EXPECT_EQ(midpoint(read_values("0..1", false), "0.5", "0.75"), "0.625");
  EXPECT_EQ(midpoint(read_values("1GB..3GB", false), "1GB", "3GB"), "2GB");
}

}  // namespace
}  // namespace foretrace
