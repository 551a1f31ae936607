// Published comparisons of pipeline schedules, predicted from models and machines alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "foretrace/error.h"
#include "foretrace/question/generate.h"

namespace foretrace {
namespace {

double seconds_of_step(const std::string& model, const std::string& machine,
                       const std::string& layout) {
  const GenerationReport report =
      generate_step({.model = model, .machine = machine, .layout = layout});
  return static_cast<double>(report.step->time.count()) / 1e9;
}

/// The time with the fastest micro-batch among those that fit, as planners choose it.
double fastest(const std::string& model, const std::string& machine, const std::string& layout) {
  double best = std::numeric_limits<double>::infinity();
  for (const char* const size : {"1", "2", "4", "8", "16", "32"}) {
    try {
      best = std::min(best, seconds_of_step(model, machine, layout + ",micro_batch=" + size));
    } catch (const Error&) {
      continue;  // It does not fit, or there are fewer micro-batches than stages.
    }
  }
  return best;
}

/// PipeDream-2BW, figure 6: a GPT of 2.2 B parameters on eight p3.16xlarge.
TEST(PublishedSchedules, TwoBwBeatsTheFlushAsPublished) {
  const std::string model = "transformer:layers=32,hidden=2304,heads=32,sequence=512";
  const auto with = [&](const std::string& layout, int batch) {
    return fastest(
        model, "aws-p3",
        layout + ",precision=fp16,fused_attention=false,global_batch=" + std::to_string(batch));
  };
  struct {
    int batch;
    double over_flush;  ///< Published: "up to 1.6x" for small batches, 1.15x for 2,048.
    double limit;
  } const published[] = {{512, 1.6, .1}, {2048, 1.15, .12}};
  for (const auto& [batch, over_flush, limit] : published) {
    const double gpipe = with("pp=8,dp=8,schedule=gpipe,recompute=full", batch);
    const double flush = with("pp=8,dp=8,recompute=full", batch);
    const double two_bw = with("pp=8,dp=8,schedule=pipedream_2bw,recompute=full", batch);
    const double tensor = with("tp=8,dp=8", batch);
    std::printf("batch %d: 2BW %.2f times as fast as the flush (published %.2f), %.2f as GPipe\n",
                batch, flush / two_bw, over_flush, gpipe / two_bw);
    EXPECT_LT(std::abs(flush / two_bw / over_flush - 1), limit);
    EXPECT_LT(two_bw, flush);
    EXPECT_LT(flush, gpipe);
    EXPECT_LT(two_bw, tensor);
  }
}

/// LLaMA 3.1 405B on 512 H100 with eight stages: 100 tokens a second and GPU with 1F1B, 128
/// interleaved (torchtitan, which cuts the 32 samples of a replica into as many micro-batches as
/// there are stages).
TEST(PublishedSchedules, InterleavingGainsOnEightStages) {
  const auto with = [&](const std::string& schedule) {
    return seconds_of_step("llama3-405b:sequence=8192", "dgx-h100",
                           "tp=8,pp=8,dp=8,micro_batch=4,global_batch=256,precision=fp8,"
                           "recompute=full,zero=1,sequence_parallel=true,schedule=" +
                               schedule);
  };
  const double gain = with("1f1b") / with("interleaved,virtual_stages=2");
  std::printf("interleaved: %.3f times as fast, published 1.28\n", gain);
  EXPECT_NEAR(gain, 1.28, .1);
}

}  // namespace
}  // namespace foretrace
