// The schema of the JSON answer. It is derived from two answers: one with every part, and an empty
// one, which lacks all that is optional.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "foretrace/answer/prediction.h"
#include "foretrace/timeline.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Descriptions of properties whose names do not explain them. The key is the end of the path of
/// names; a later entry overrides an earlier one.
constexpr std::pair<std::string_view, std::string_view> kMeanings[] = {
    {"$.scenario", "Effective settings, defaults included"},
    {"$.measured", "What was recorded"},
    {".measured.step_time_ns", "Median of the steady steps"},
    {".measured.window_ns", "Length of the recording"},
    {".measured.counted_steps", "Steps that the step time is taken from"},
    {".measured.spread",
     "(slowest - fastest) / step time, without a tenth of the steps at either end"},
    {".measured.period", "Number of steps that alternate and are taken together"},
    {"d.steps", "Length of each step, in nanoseconds"},
    {"e.steps", "Length of each step, in nanoseconds"},
    {"$.baseline", "The replay of the unmodified job"},
    {".replay_error", "|baseline - measured| / measured"},
    {".pinned_tasks", "Tasks held at their recorded start because no cause is known"},
    {".unexplained_ns", "Delays on device lanes kept without a known cause"},
    {".peers_ns", "Time in collectives that only the traces of other ranks explain"},
    {".open_ns",
     "How much shorter a step would be without the time that the recording leaves open"},
    {".open_ns.unexplained", "Delays without a known cause"},
    {".open_ns.other_ranks", "Waits of collectives for other ranks"},
    {".tasks", "Tasks in the graph"},
    {".dependencies", "Number of dependencies by kind of evidence"},
    {".breakdown_ns",
     "Where the time of an average steady step goes; the parts add up to the step time"},
    {".compute", "A kernel runs"},
    {".communication", "No kernel runs, but a collective does"},
    {".copy", "None of the above, but a copy or fill runs"},
    {".input", "None of the above, but a host thread loads data"},
    {".host", "None of the above, but a host thread works"},
    {".idle", "Nothing runs"},
    {".unknown", "None of the above, but a host thread waits for work that is not recorded"},
    {".rates", "Work that a rank gets done; null where unknown"},
    {".samples_per_second", "With --samples-per-step"},
    {".tokens_per_second", "With --tokens-per-step"},
    {".flops_per_step", "Matrix products and convolutions whose shapes were recorded"},
    {".known_share", "Share of the time of compute-bound kernels that flops_per_step covers"},
    {".peak_flops_per_second", "Peak of the device in half precision, dense"},
    {".mfu",
     "flops_per_step per step time, as a share of the peak; a lower bound where known_share is "
     "below 1, and null where it is below 0.5"},
    {".exposed_communication", "Share of a step in which only communication runs"},
    {".memory", "Peaks by device; empty where the trace has no memory events"},
    {".lower_allocated_bytes",
     "80 % of such changes have a peak from this to upper_allocated_bytes; null if not in doubt"},
    {".peak_reserved_bytes", "Reserved by the caching allocator, from its replay"},
    {".out_of_memory", "The first request that was refused under the memory limit"},
    {"$.predicted", "The replay of the job as the scenario changes it"},
    {".lower_ns", "Lower end of the interval; in a part, with this source alone"},
    {".upper_ns", "Upper end of the interval; in a part, with this source alone"},
    {".step_kinds",
     "Medians of the steps of each kind, where steps differ by more than 30 %; empty elsewhere"},
    {".is_typical", "Whether step_time_ns and its interval are those of this kind"},
    {".compute_lower_ns",
     "Kernel time of four of five steps is expected from this to compute_upper_ns"},
    {".level", "Share of steps that are expected between lower_ns and upper_ns"},
    {".resamples", "Replays with the work of other steps; 0 if none"},
    {".parts",
     "Sources of the interval: steps, model, inferred, unexplained, replay or missing_ranks"},
    {".memory_limit_bytes", "The memory limit in the question, or the memory of its machine"},
    {".assumptions", "What the prediction assumes"},
    {"$.unprofiled",
     "Step times without the host time that the profiler itself takes; null if unknown, or for "
     "several ranks"},
    {".per_record_ns", "Host time that recording one op, call or block of memory takes"},
    {".baseline_step_time_ns", "The replay of the job as it was recorded, without that time"},
    {".predicted_step_time_ns", "The replay of the changed job, without that time"},
    {".speedup", "Baseline step time / predicted step time"},
    {".steps[].use", "The step in the form that --with takes"},
    {".figures", "Numbers that the step computed in addition to its edits"},
    {"$.rank", "The rank that the answer is about"},
    {"$.ranks", "The ranks of a job that has several; of ranks that are alike, only the first"},
    {".alike", "Number of other ranks that are provably like this one"},
    {".lower_steps", "Lower ends of the intervals of its steps, in ns; upper_steps: upper ends"},
    {".is_recorded", "False if the rank was not recorded but is assumed to be like one that was"},
    {".matched_collectives", "Recorded collectives that were matched with those of other ranks"},
    {".skew_ns", "Time in its collectives until the last rank had entered, in the recording"},
    {".transfer_ns", "The rest of the time of its matched collectives"},
    {".times_last", "Number of collectives that it entered last"},
    {".keeps_waiting_ns", "How long after the last but one it entered these, in all"},
    {".clock_offset_ns", "To be added to its clock to get the common time, that of the first rank"},
    {".clock_residual_ns", "Median distance that is left between the ends of common collectives"},
    {".clock_drift", "Time gained on the common clock, as a share of the time that passes"},
    {"$.trust", "How far the answer can be relied on; the grade is that of the worst reason"},
    {".grade", "good, fair or poor"},
    {".limit", "Limit that the value is compared with"},
    {"$.notes", "Odd data, in order of appearance"},
    {".severity", "info or warning"},
    {".critical_path", "With --explain"},
    {"$.training", "With --total-steps or --tokens: the whole training"},
    {".price", "Of all GPUs, in currency; null without --prices"},
    {".energy_wh", "Of all GPUs; null without --power"},
    {".goodput", "Share of the time that trains"},
};

Prediction full_answer() {
  Prediction full;
  full.inputs.resize(1);
  full.steps.resize(1);
  full.ranks.resize(1);
  full.ranks[0].predicted_steps.resize(1);
  full.explained.resize(1);
  full.assumptions.resize(1);
  full.interval_parts.resize(1);
  full.step_kinds.resize(1);
  full.memory_limit = Bytes{1};
  full.training = TrainingRun{.tokens = 1,
                              .price = RangedNumber{},
                              .energy = RangedNumber{},
                              .currency = "USD",
                              .failures = TrainingRun::Failures{},
                              .assumptions = {""}};
  full.trust.reasons = {{.name = {}, .text = {}, .value = 1, .limit = 1}, {}};
  full.notes.add(Severity::info, "");
  MemoryPeak peak{.peak_reserved = Bytes{},
                  .lower_allocated = Bytes{},
                  .upper_allocated = Bytes{},
                  .recorded_reserved = Bytes{},
                  .out_of_memory = Refusal{}};
  full.baseline_memory = full.predicted_memory = {peak, MemoryPeak{}};
  for (StepTimes* times : {&full.measured, &full.baseline, &full.predicted})
    *times = {.each = {1ns}, .counted = {1ns}, .step_time = 1ns};
  full.baseline_rates = full.predicted_rates = {
      .flops = 1, .known_share = 1, .peak_flops = 1, .peak_of = {}, .samples = 1, .tokens = 1};
  return full;
}

std::string_view type_of(const Json& value) {
  if (value.is_number_float()) return "number";
  return value.is_number() ? "integer" : value.type_name();
}

/// Derives the schema of a part of the answer. `least` is the same part of the empty answer, or
/// nullptr if that lacks it.
Json schema_of(const Json& full, const Json* least, const std::string& path) {
  Json schema = {{"type", type_of(full)}};
  if (least != nullptr && least->is_null()) schema["type"] = {type_of(full), "null"};
  for (const auto& [end, meaning] : kMeanings) {
    if (path.ends_with(end)) schema["description"] = meaning;
  }
  if (full.is_array() && !full.empty())
    schema["items"] = schema_of(full[0], full.size() > 1 ? &full[1] : nullptr, path + "[]");
  if (!full.is_object() || full.empty()) return schema;
  for (const auto& [key, value] : full.items()) {
    const bool is_kept = least == nullptr || !least->is_object() || least->contains(key);
    const Json* const part =
        least != nullptr && least->is_object() && is_kept ? &(*least)[key] : nullptr;
    schema["properties"][key] = schema_of(value, part, path + "." + key);
    if (is_kept) schema["required"].push_back(key);
  }
  return schema;
}

}  // namespace

Json prediction_schema() {
  const Json least = to_json(Prediction{});
  Json schema = schema_of(to_json(full_answer()), &least, "$");
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = least["schema"];
  schema["description"] = "The answer of `foretrace predict --format json`";
  schema["properties"]["schema"] = {{"const", least["schema"]}};
  return schema;
}

}  // namespace foretrace
