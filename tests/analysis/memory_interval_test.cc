#include "analysis/doubt/memory_interval.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

MemoryPeak predicted_peak(const std::vector<AppliedStep>& steps) {
  Prediction prediction;
  prediction.steps = steps;
  prediction.baseline_memory = {{.device = 0, .peak_allocated = Bytes{1000}}};
  prediction.predicted_memory = {{.device = 0, .peak_allocated = Bytes{2000}}};
  set_memory_interval(prediction);
  return prediction.predicted_memory.front();
}

Bytes width(const MemoryPeak& peak) { return *peak.upper_allocated - *peak.lower_allocated; }

TEST(MemoryInterval, IsAroundThePeak) {
  const MemoryPeak peak = predicted_peak({{.use = "batch_size:factor=2", .summary = {}}});
  ASSERT_TRUE(peak.lower_allocated && peak.upper_allocated);
  EXPECT_LT(*peak.lower_allocated, Bytes{2000});
  EXPECT_GT(*peak.upper_allocated, Bytes{2000});
}

TEST(MemoryInterval, IsWiderForKindsThatWereFurtherOffAndForSeveral) {
  const AppliedStep batch{.use = "batch_size", .summary = {}}, amp{.use = "amp", .summary = {}};
  EXPECT_LT(width(predicted_peak({batch})), width(predicted_peak({amp})));
  EXPECT_LT(width(predicted_peak({amp})), width(predicted_peak({amp, batch})));
}

TEST(MemoryInterval, EditsDoWhatTheySay) {
  EXPECT_FALSE(predicted_peak({{.use = "resize:factor=2", .summary = {}}}).lower_allocated);
  EXPECT_FALSE(
      predicted_peak({{.use = "amp", .summary = {}, .changed_nothing = true}}).lower_allocated);
}

TEST(MemoryInterval, OfAPeakThatStaysThereIsNone) {
  Prediction prediction;
  prediction.steps = {{.use = "amp", .summary = {}}};
  prediction.baseline_memory =
      prediction.predicted_memory = {{.device = 0, .peak_allocated = Bytes{1000}}};
  set_memory_interval(prediction);
  EXPECT_FALSE(prediction.predicted_memory.front().lower_allocated);
}

TEST(MemoryInterval, ReachesAsFarUpAsWhatCouldNotBeCounted) {
  const MemoryPeak known = predicted_peak({{.use = "amp", .summary = {}}});
  const MemoryPeak unknown = predicted_peak(
      {{.use = "amp", .summary = {}, .figures = {{"weight_casts_at_most", Bytes{500}}}}});
  EXPECT_EQ(*unknown.upper_allocated, *known.upper_allocated + Bytes{500});
  EXPECT_EQ(*unknown.lower_allocated, *known.lower_allocated);
}

TEST(MemoryInterval, DeviationsAreThoseOfTheTables) {
  EXPECT_DOUBLE_EQ(student_deviations(2), 1.886);
  EXPECT_NEAR(student_deviations(10), 1.372, 0.01);
  EXPECT_NEAR(student_deviations(1000), 1.2824, 0.001);
}

}  // namespace
}  // namespace foretrace
