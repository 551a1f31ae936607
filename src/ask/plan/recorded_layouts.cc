#include "ask/plan/recorded_layouts.h"

#include <algorithm>
#include <array>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Schedules with a flush, the same as for described models.
constexpr std::array kSchedules = {"1f1b", "gpipe",  "interleaved:chunks=2", "zb_h1", "zb_h2",
                                   "zb_v", "chimera"};

std::string number(const char* name, std::int64_t value) {
  return std::string(name) + "=" + std::to_string(value);
}

}  // namespace

std::string RecordedLayout::text() const {
  std::string text = number("pp", stages) + "," + number("dp", copies);
  if (micro_batches > 1) text += "," + number("micro_batches", micro_batches);
  if (stages > 1) text += ",schedule=" + schedule;
  if (zero > 0) text += "," + number("zero", zero);
  if (recomputes) text += ",recompute=full";
  return text;
}

std::vector<std::string> RecordedLayout::steps(const PlanQuestion& question) const {
  const std::string network = ",machine=\"" + question.machine + "\"";
  const auto size = [](const char* name, Bytes bytes) {
    return bytes > Bytes{} ? std::string(",") + name + "=" + to_exact_text(bytes) : std::string();
  };
  const std::string gradients = size("gradient_bytes", question.gradients);
  std::vector<std::string> steps;
  if (stages > 1) {
    std::string step = "pipeline:" + number("stages", stages) + "," +
                       number("micro_batches", micro_batches) + ",schedule=\"" + schedule + "\"";
    if (copies > 1) step += "," + number("replicas", copies) + gradients;
    if (recomputes) step += ",recompute=true";
    if (copies > 1 || question.output > Bytes{}) step += network;
    return {step + size("output_bytes", question.output)};
  }
  if (recomputes) steps.emplace_back("recompute:policy=every");
  if (micro_batches > 1) {  // Accumulation alone would divide the recorded batch.
    steps.push_back("batch_size:" + number("factor", micro_batches));
    steps.push_back("gradient_accumulation:" + number("micro_batches", micro_batches));
  }
  if (copies > 1 && zero == 0)
    steps.push_back("data_parallel:" + number("gpus", copies) + network + gradients);
  if (copies > 1 && zero > 0)
    steps.push_back("zero:" + number("stage", zero) + "," + number("workers", copies) + network +
                    gradients);
  return steps;
}

std::int64_t recorded_batches(const PlanQuestion& question) {
  return question.global_batch > 0 ? question.global_batch : std::ranges::max(question.gpus);
}

std::vector<RecordedLayout> recorded_layouts(const PlanQuestion& question, std::int64_t gpus) {
  const std::int64_t batch = recorded_batches(question);
  std::vector<RecordedLayout> all;
  for (std::int64_t stages = 1; stages <= gpus; ++stages) {
    const std::int64_t copies = gpus / stages;
    if (gpus % stages != 0 || batch % copies != 0) continue;
    RecordedLayout one{.stages = stages, .copies = copies, .micro_batches = batch / copies};
    for (one.recomputes = false;; one.recomputes = true) {
      if (stages == 1) {
        for (one.zero = 0; one.zero <= (copies > 1 ? 3 : 0); ++one.zero) all.push_back(one);
        one.zero = 0;
      } else {
        for (const char* schedule : kSchedules) {
          one.schedule = schedule;
          all.push_back(one);
        }
      }
      if (one.recomputes) break;
    }
  }
  if (all.empty())
    throw Error("--global-batch: must be a multiple of the copies of some layout on " +
                std::to_string(gpus) + " GPUs, counted in recorded batches, got " +
                std::to_string(batch));
  return all;
}

}  // namespace foretrace
