#pragma once

// The formats of answers: text, JSON, Markdown, CSV, pages. The content of an answer is in answer/;
// one file per format in src/report writes it.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/advice.h"
#include "foretrace/answer/allocation.h"
#include "foretrace/answer/check.h"
#include "foretrace/answer/collective.h"
#include "foretrace/answer/diagnosis.h"
#include "foretrace/answer/diff.h"
#include "foretrace/answer/generation.h"
#include "foretrace/answer/input.h"
#include "foretrace/answer/memory.h"
#include "foretrace/answer/pairs.h"
#include "foretrace/answer/pipeline.h"
#include "foretrace/answer/plan.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/answer/scale.h"
#include "foretrace/answer/serving.h"
#include "foretrace/answer/sizing.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/answer/system.h"
#include "foretrace/answer/trust.h"
#include "foretrace/answer/validation.h"
#include "foretrace/answer/verification.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

struct AllocatorOutcome;
struct AllocatorProgram;

/// The object with schema "foretrace.curve/1".
nlohmann::json to_json(const Curve& curve);
void write_curve_text(const Curve& curve, std::ostream& out);
void write_curve_csv(const Curve& curve, std::ostream& out);
void write_curve_markdown(const Curve& curve, std::ostream& out);

/// The object of "Contracts" in docs/design.md, with schema "foretrace.prediction/1".
nlohmann::json to_json(const Prediction& prediction);
/// The JSON schema of that object.
nlohmann::json prediction_schema();

/// One per line of reports.def: text, json, markdown, csv.
struct ReportEntry {
  std::string_view name, summary;
  void (*write)(const Prediction& prediction, std::ostream& out);
};
const std::vector<ReportEntry>& reports();

/// Describes the content of a trace. `steps`: as infer() finds them; nullptr if unknown. `among`:
/// the rank among others; nullptr if it meets none.
nlohmann::json describe_trace(const Trace& trace, const StepTimes* steps = nullptr,
                              const RankFacts* among = nullptr);
void write_info(const Trace& trace, std::ostream& out, const StepTimes* steps = nullptr,
                const RankFacts* among = nullptr);

/// The object with schema "foretrace.doctor/1".
nlohmann::json to_json(const std::vector<Diagnosis>& ranks);
void write_diagnosis(const std::vector<Diagnosis>& ranks, std::ostream& out);

/// {"grade": "fair", "reasons": [{"name", "grade", "text", "value", "limit"}]}
nlohmann::json to_json(const Trust& trust);

/// The object with schema "foretrace.advice/1".
nlohmann::json to_json(const Advice& advice);
/// Writes one screen of 24 lines and 100 columns: the answers, the best suggestions, ceilings.
void write_advice_text(const Advice& advice, std::ostream& out);
/// Writes the whole answer.
void write_whole_advice_text(const Advice& advice, std::ostream& out);
/// Writes the same as a self-contained page, for a browser without a network.
void write_advice_page(const Advice& advice, std::ostream& out);
void write_advice_markdown(const Advice& advice, std::ostream& out);
void write_advice_csv(const Advice& advice, std::ostream& out);

/// One per form: text, json, markdown, junit, github, bencher, benchmark.
struct CheckForm {
  std::string_view name, summary;
  void (*write)(const CheckReport& report, std::ostream& out);
};
const std::vector<CheckForm>& check_forms();
/// The object with schema "foretrace.check/1".
nlohmann::json to_json(const CheckReport& report);
void write_check_json(const CheckReport& report, std::ostream& out);
void write_check_text(const CheckReport& report, std::ostream& out);
void write_check_markdown(const CheckReport& report, std::ostream& out);
/// Writes one test per figure. The body of a failure has the numbers, because some viewers show
/// only that.
void write_check_junit(const CheckReport& report, std::ostream& out);
/// Writes workflow commands: at most ten annotations of a kind, because GitHub shows no more per
/// step.
void write_check_github(const CheckReport& report, std::ostream& out);
/// Writes Bencher Metric Format (bencher.dev).
void write_check_bencher(const CheckReport& report, std::ostream& out);
/// Writes customSmallerIsBetter of github-action-benchmark.
void write_check_benchmark(const CheckReport& report, std::ostream& out);

/// The object with schema "foretrace.diff/1".
nlohmann::json to_json(const DiffReport& report);
nlohmann::json diff_json(const Diff& diff);
void write_diff_text(const DiffReport& report, std::ostream& out);
void write_diff_markdown(const DiffReport& report, std::ostream& out);
/// One line for each cause of each rank.
void write_diff_csv(const DiffReport& report, std::ostream& out);

/// The object with schema "foretrace.verification/1".
nlohmann::json to_json(const Verification& verification);
void write_verification_text(const Verification& verification, std::ostream& out);
void write_verification_markdown(const Verification& verification, std::ostream& out);

/// The object with schema "foretrace.collective/1".
nlohmann::json to_json(const CollectiveReport& report);
/// Has the columns that nccl-tests prints.
void write_collective_text(const CollectiveReport& report, std::ostream& out);
void write_collective_csv(const CollectiveReport& report, std::ostream& out);
/// Has a plot of bandwidth over size.
void write_collective_page(const CollectiveReport& report, std::ostream& out);

/// The object with schema "foretrace.scale/1".
nlohmann::json to_json(const ScaleReport& report);
void write_scale_text(const ScaleReport& report, std::ostream& out);
/// One row for each scheme and count.
void write_scale_csv(const ScaleReport& report, std::ostream& out);
/// Has a plot of throughput over GPUs.
void write_scale_page(const ScaleReport& report, std::ostream& out);

/// The object with schema "foretrace.serving/1".
nlohmann::json to_json(const ServingReport& report);
void write_serving_text(const ServingReport& report, std::ostream& out);
/// One row for each point, or for each measured deployment.
void write_serving_csv(const ServingReport& report, std::ostream& out);

/// The object with schema "foretrace.pipeline/1".
nlohmann::json to_json(const PipelineReport& report);
/// Has a line for each rank, to scale.
void write_pipeline_text(const PipelineReport& report, std::ostream& out);
/// Shows the passes of each rank as bars.
void write_pipeline_page(const PipelineReport& report, std::ostream& out);

/// The object with schema "foretrace.generation/1".
nlohmann::json to_json(const GenerationReport& report);
void write_generation_text(const GenerationReport& report, std::ostream& out);
/// One line for each measured row, or for the step.
void write_generation_csv(const GenerationReport& report, std::ostream& out);

/// The object with schema "foretrace.plan/1".
nlohmann::json to_json(const PlanReport& report);
void write_plan_text(const PlanReport& report, std::ostream& out);
void write_plan_markdown(const PlanReport& report, std::ostream& out);
/// Has a plot of the front of time and memory.
void write_plan_page(const PlanReport& report, std::ostream& out);
/// Writes one line for each ranked layout, then one for each layout on the front.
void write_plan_csv(const PlanReport& report, std::ostream& out);

/// The object with schema "foretrace.allocation/1".
nlohmann::json to_json(const AllocationReport& report);
void write_allocation_text(const AllocationReport& report, std::ostream& out);
/// One line for each job of a decision.
void write_allocation_csv(const AllocationReport& report, std::ostream& out);

/// The object with schema "foretrace.sizing/1".
nlohmann::json to_json(const SizingReport& report);
void write_sizing_text(const SizingReport& report, std::ostream& out);

/// The object with schema "foretrace.system/1".
nlohmann::json to_json(const SystemReport& report);
void write_system_text(const SystemReport& report, std::ostream& out);

/// The object with schema "foretrace.input/1". Durations are per step.
nlohmann::json to_json(const InputReport& report);
void write_input(const InputReport& report, std::ostream& out);

/// The object with schema "foretrace.memory/1".
nlohmann::json to_json(const MemoryReport& report);
void write_memory_text(const MemoryReport& report, std::ostream& out);
/// One row per block.
void write_memory_csv(const MemoryReport& report, const Graph& graph, std::ostream& out);
/// Writes a self-contained page with the level, blocks over time, and all tables.
void write_memory_html(const MemoryReport& report, const Graph& graph, std::ostream& out);

/// The object with schema "foretrace.allocator/1": the levels, peaks and blocks of an allocator
/// after a program.
void write_allocator_json(const AllocatorProgram& program, const AllocatorOutcome& outcome,
                          std::ostream& out);
void write_allocator_outcome(const AllocatorProgram& program, const AllocatorOutcome& outcome,
                             std::ostream& out);

/// The object with schema "foretrace.pair_validation/1".
nlohmann::json to_json(const PairsReport& report);
void write_pairs_text(const PairsReport& report, std::ostream& out);
void write_pairs_markdown(const PairsReport& report, std::ostream& out);

/// The object with schema "foretrace.validation/1".
nlohmann::json to_json(const Validation& validation);
nlohmann::json to_json(const ValidatedRank& rank);
/// Writes a row for each rank, and how many left-out steps lie inside their interval.
void write_validation_text(const std::vector<ValidatedRank>& ranks, std::ostream& out);
void write_validation_markdown(const std::vector<ValidatedRank>& ranks, std::ostream& out);

void write_sweep_text(const SweepReport& report, std::ostream& out);
void write_sweep_markdown(const SweepReport& report, std::ostream& out);
/// The object with schema "foretrace.sweep_summary/1".
nlohmann::json to_json(const SweepReport& report);
void write_sweep_page(const SweepReport& report, std::ostream& out);

/// Writes less than 6 MB, however many tasks there are.
void write_prediction_page(const PredictionPage& page, std::ostream& out);
/// The parts of that page, for a page that shows one answer after another: {"heading", "lead"
/// (HTML), "sections": [{"id", "heading", "html"}], "timelines", "memory" (JSON texts that
/// page/*.js read)}. Timelines have at most `most_tasks` tasks: those of one step come first, then
/// the longest.
nlohmann::json prediction_parts(const PredictionPage& page, std::size_t most_tasks);

}  // namespace foretrace
