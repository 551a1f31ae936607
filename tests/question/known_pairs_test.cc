// Pairs of recordings of one job before and after a change: the prediction from the first is
// compared with the second.

#include <gtest/gtest.h>

#include <optional>

#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "foretrace/transform.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

double step_ms(const Graph& graph, const Timeline& timeline) {
  return static_cast<double>(step_times(graph, timeline).step_time.count()) / 1e6;
}

/// The step time predicted from `before`, divided by the recorded one of `after`. Returns nullopt
/// if the corpus lacks either.
std::optional<double> predicted_over_recorded(const std::string& before, const std::string& after,
                                              const std::string& step) {
  const std::vector<std::string> first = corpus_files({before});
  const std::vector<std::string> second = corpus_files({after});
  if (first.empty() || second.empty()) return std::nullopt;
  Inference from = infer(import_trace(first.front()));
  const Inference outcome = infer(import_trace(second.front()));
  read_transform_text(step)->apply(from.graph, {.donor = &outcome.graph});
  return step_ms(from.graph, simulate(from.graph)) / step_ms(outcome.graph, outcome.recorded);
}

TEST(KnownPairs, ACompiledModelIsWithinATwentieth) {
  const auto ratio = predicted_over_recorded("nsys-27b-eager-graph/result_2_7B_clean.sqlite",
                                             "nsys-27b-eager-graph/result_2_7B_compile_ro.sqlite",
                                             "torch_compile:mode=reduce-overhead");
  if (!ratio) GTEST_SKIP() << kNoCorpus;
  EXPECT_NEAR(*ratio, 1, 0.05);
}

TEST(KnownPairs, GraphsGainNothingWhereTheDeviceIsBusy) {
  const auto ratio =
      predicted_over_recorded("tinylm-ladder/trace_04.json.gz", "tinylm-ladder/trace_05.json.gz",
                              "torch_compile:mode=reduce-overhead");
  if (!ratio) GTEST_SKIP() << kNoCorpus;
  EXPECT_NEAR(*ratio, 1, 0.02);
}

TEST(KnownPairs, KernelsOfAnotherRecordingGiveItsStepTime) {
  const auto ratio = predicted_over_recorded("vit-int8/vitl_bf16.json.gz",
                                             "vit-int8/vitl_int8.json.gz", "kernel_from");
  if (!ratio) GTEST_SKIP() << kNoCorpus;
  EXPECT_NEAR(*ratio, 1, 0.01);
}

}  // namespace
}  // namespace foretrace
