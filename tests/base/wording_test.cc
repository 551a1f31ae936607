#include "base/wording.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

TEST(Wording, CountsAreFollowedByTheRightNumberOfTheNoun) {
  EXPECT_EQ(counted(1, "time"), "1 time");
  EXPECT_EQ(counted(0, "time"), "0 times");
  EXPECT_EQ(counted(1234567, "switch"), "1,234,567 switches");
  EXPECT_EQ(counted(std::size_t{2000}, "copy task"), "2,000 copy tasks");
  EXPECT_EQ(counted(2, "access"), "2 accesses");
  EXPECT_EQ(counted(1, "access"), "1 access");
  EXPECT_EQ(counted(2, "copy"), "2 copies");
  EXPECT_EQ(counted(2, "replay"), "2 replays");
}

}  // namespace
}  // namespace foretrace
