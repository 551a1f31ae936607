#pragma once

// Facts of recordings as JSON, pages with drawings, and forms for build servers. The rest
// of an answer, document_of() and to_json(), belongs to its own header in answer/.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "foretrace/answer/memory.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/answer/trust.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

struct AllocatorOutcome;
struct AllocatorProgram;
struct CheckReport;
struct Diff;
class Document;

/// The JSON schema of the object that to_json() makes of a prediction.
nlohmann::json prediction_schema();

/// The forms of a prediction that a scenario can ask for, sorted.
struct ReportEntry {
  std::string_view name, summary;
};
const std::vector<ReportEntry>& reports();

/// Describes the content of a trace. `steps`: as infer() finds them; nullptr if unknown. `among`:
/// the rank among others; nullptr if it meets none.
nlohmann::json describe_trace(const Trace& trace, const StepTimes* steps = nullptr,
                              const RankFacts* among = nullptr);
/// Adds the same, for people.
void add_info(const Trace& trace, const StepTimes* steps, const RankFacts* among,
              Document& document);

/// {"grade": "fair", "reasons": [{"name", "grade", "text", "value", "limit"}]}
nlohmann::json to_json(const Trust& trust);

/// One per form of a check for build servers: junit, github, bencher, benchmark.
struct CheckForm {
  std::string_view name, summary;
  void (*write)(const CheckReport& report, std::ostream& out);
};
const std::vector<CheckForm>& check_forms();
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

nlohmann::json diff_json(const Diff& diff);

/// One row per block.
void write_csv(const MemoryReport& report, const Graph& graph, std::ostream& out);
/// Writes a self-contained page with the level, blocks over time, and all tables.
void write_memory_html(const MemoryReport& report, const Graph& graph, std::ostream& out);

/// The object with schema "foretrace.allocator/1": the levels, peaks and blocks of an allocator
/// after a program.
nlohmann::ordered_json to_json(const AllocatorProgram& program, const AllocatorOutcome& outcome);
Document document_of(const AllocatorProgram& program, const AllocatorOutcome& outcome);

void write_sweep_page(const SweepReport& report, std::ostream& out);

/// Writes less than 6 MB, however many tasks there are.
void write_prediction_page(const PredictionPage& page, std::ostream& out);
/// The parts of that page, for a page that shows one answer after another: {"heading", "lead"
/// (HTML), "sections": [{"id", "heading", "html"}], "timelines", "memory" (JSON texts that
/// page/*.js read)}. Timelines have at most `most_tasks` tasks: those of one step come first, then
/// the longest.
nlohmann::json prediction_parts(const PredictionPage& page, std::size_t most_tasks);
/// The timelines of two recordings on one axis: {"sections", "timelines"}, as above.
nlohmann::json recordings_parts(const DrawnRun& a, const DrawnRun& b, std::size_t most_tasks);

}  // namespace foretrace
