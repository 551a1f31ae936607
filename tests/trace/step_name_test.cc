#include "trace/step_name.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

TEST(StepName, IsAWordAndANumber) {
  const std::pair<const char*, std::uint64_t> steps[] = {
      {"ProfilerStep#12", 12}, {"step 3", 3},       {"Step: 04", 4}, {"iteration_5", 5},
      {"ITER-6", 6},           {"train_step 7", 7}, {"batch8", 8},   {"step=9", 9}};
  for (const auto& [name, number] : steps) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(step_name(name));
    EXPECT_EQ(step_name(name)->number, number);
  }
}

TEST(StepName, IsNotEveryNameWithANumber) {
  for (const char* name : {"", "12", "step", "# 12", "layer 12", "step 12 forward", "my step 12",
                           "conv2d_12", "step 9999999999999999999"}) {
    EXPECT_FALSE(step_name(name)) << name;
  }
}

}  // namespace
}  // namespace foretrace
