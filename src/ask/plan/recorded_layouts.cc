#include "ask/plan/recorded_layouts.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Schedules with a flush, the same as for described models.
constexpr std::array kSchedules = {"1f1b", "gpipe",  "interleaved:chunks=2", "zb_h1", "zb_h2",
                                   "zb_v", "chimera"};

}  // namespace

std::string RecordedLayout::text() const {
  std::string text = fmt::format("pp={},dp={}", stages, copies);
  if (micro_batches > 1) text += fmt::format(",micro_batches={}", micro_batches);
  if (stages > 1) text += ",schedule=" + schedule;
  if (zero > 0) text += fmt::format(",zero={}", zero);
  if (recomputes) text += ",recompute=full";
  return text;
}

std::vector<std::string> RecordedLayout::steps(const PlanQuestion& question) const {
  const std::string network = fmt::format(",machine=\"{}\"", question.machine);
  const auto size = [](const char* name, Bytes bytes) {
    return bytes > Bytes{} ? fmt::format(",{}={}", name, to_exact_text(bytes)) : std::string();
  };
  const std::string gradients = size("gradient_bytes", question.gradients);
  std::vector<std::string> steps;
  if (stages > 1) {
    std::string step = fmt::format("pipeline:stages={},micro_batches={},schedule=\"{}\"", stages,
                                   micro_batches, schedule);
    if (copies > 1) step += fmt::format(",replicas={}{}", copies, gradients);
    if (recomputes) step += ",recompute=true";
    if (copies > 1 || question.output > Bytes{}) step += network;
    return {step + size("output_bytes", question.output)};
  }
  if (recomputes) steps.emplace_back("recompute:policy=every");
  if (micro_batches > 1) {  // Accumulation alone would divide the recorded batch.
    steps.push_back(fmt::format("batch_size:factor={}", micro_batches));
    steps.push_back(fmt::format("gradient_accumulation:micro_batches={}", micro_batches));
  }
  if (copies > 1 && zero == 0)
    steps.push_back(fmt::format("data_parallel:gpus={}{}{}", copies, network, gradients));
  if (copies > 1 && zero > 0)
    steps.push_back(fmt::format("zero:stage={},workers={}{}{}", zero, copies, network, gradients));
  return steps;
}

std::int64_t recorded_batches(const PlanQuestion& question) {
  return question.global_batch > 0 ? question.global_batch : std::ranges::max(question.gpus);
}

std::vector<RecordedLayout> recorded_layouts(const PlanQuestion& question, std::int64_t gpus) {
  const std::int64_t batch = recorded_batches(question);
  std::vector<RecordedLayout> layouts;
  for (std::int64_t stages = 1; stages <= gpus; ++stages) {
    const std::int64_t copies = gpus / stages;
    if (gpus % stages != 0 || batch % copies != 0) continue;
    RecordedLayout layout{.stages = stages, .copies = copies, .micro_batches = batch / copies};
    for (layout.recomputes = false;; layout.recomputes = true) {
      if (stages == 1) {
        for (layout.zero = 0; layout.zero <= (copies > 1 ? 3 : 0); ++layout.zero)
          layouts.push_back(layout);
        layout.zero = 0;
      } else {
        for (const char* schedule : kSchedules) {
          layout.schedule = schedule;
          layouts.push_back(layout);
        }
      }
      if (layout.recomputes) break;
    }
  }
  if (layouts.empty())
    throw Error(
        fmt::format("--global-batch: must be a multiple of the copies of some layout on {} GPUs, "
                    "counted in recorded batches, got {}",
                    gpus, batch));
  return layouts;
}

}  // namespace foretrace
