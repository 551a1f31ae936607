#include "transform/worth.h"

#include <gtest/gtest.h>

#include "foretrace/transform.h"

namespace foretrace {
namespace {

TEST(Worth, EveryTryIsAStepThatCanBeRead) {
  for (const Worth& worth : worths()) {
    SCOPED_TRACE(worth.name);
    for (const std::string_view text : worth.tries) {
      std::string step(text);
      if (const std::size_t at = step.find("<device>"); at != step.npos)
        step.replace(at, 8, "h100-sxm5-80gb");
      EXPECT_TRUE(step == worth.name || step.starts_with(std::string(worth.name) + ":")) << step;
      EXPECT_NO_THROW(read_transform_text(step));
    }
  }
}

TEST(Worth, WhatIsNotTriedSaysWhy) {
  for (const Worth& worth : worths()) {
    SCOPED_TRACE(worth.name);
    EXPECT_EQ(worth.goal == Goal::none, worth.tries.empty());
    EXPECT_EQ(worth.goal == Goal::none, !worth.why_not.empty());
    EXPECT_EQ(worth.goal == Goal::none, worth.holds.empty());
  }
}

TEST(Worth, EveryTransformHasALine) {
  ASSERT_EQ(worths().size(), transforms().size());
  for (std::size_t i = 0; i < worths().size(); ++i)
    EXPECT_EQ(worths()[i].name, transforms()[i].name);
}

}  // namespace
}  // namespace foretrace
