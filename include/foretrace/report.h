#pragma once

// Answers, and the forms they are given in. One file per report in src/report; the list is
// reports.def.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

struct InputFile {
  std::string path, format, sha256;
};

struct MemoryPeak {
  std::int32_t device = 0;
  Bytes peak_allocated{};
  std::optional<Bytes> peak_reserved;  ///< Where the trace records it.
};

struct AppliedStep {
  std::string use;  ///< With its settings, as could be given to --with.
  std::string summary;
  bool changed_nothing = false;
};

/// One line of --explain: a task on the critical path and what it waited for.
struct Explained {
  std::string task, lane, reason;
  Nanoseconds start{0}, duration{0}, waited{0};
};

/// The answer of `predict`.
struct Prediction {
  std::vector<InputFile> inputs;
  std::string scenario_json;  ///< Effective settings, as JSON text.

  StepTimes measured;
  Nanoseconds window{0};
  bool has_steps = false;  ///< Otherwise step times are those of the whole window.

  StepTimes baseline;
  double replay_error = 0;
  Unexplained unexplained;
  std::size_t tasks = 0;
  std::size_t dependencies[4] = {};  ///< Indexed by Provenance.
  Breakdown baseline_breakdown;
  std::vector<MemoryPeak> baseline_memory;

  StepTimes predicted;
  Nanoseconds lower{0}, upper{0};
  std::string interval_source;  ///< Where the interval comes from, in words.
  Breakdown predicted_breakdown;
  std::vector<MemoryPeak> predicted_memory;
  std::vector<std::string> assumptions;
  double speedup = 1;  ///< baseline step time / predicted step time.

  std::vector<AppliedStep> steps;
  std::vector<Explained> explained;  ///< Only with --explain.
  Notes notes;
};

/// The object of DESIGN section 4, schema "foretrace.prediction/1".
nlohmann::json to_json(const Prediction& prediction);

/// One per line of reports.def: text, json, markdown, csv.
struct ReportEntry {
  std::string_view name, summary;
  void (*write)(const Prediction& prediction, std::ostream& out);
};
const std::vector<ReportEntry>& reports();

/// The timeline as Kineto/Chrome JSON that opens in Perfetto and that import_trace() reads back:
/// same categories, correlation ids and sync records; no two overlapping events on one track. gzip
/// if the path ends in .gz. Throws Error if it cannot be written.
void write_kineto(const Graph& graph, const Timeline& timeline, const std::string& path);

/// What a trace holds, for `info`; and what is missing, what that costs a prediction and which
/// profiler setting would fix it, for `doctor`.
struct Finding {
  Severity severity = Severity::info;
  std::string what, cost, fix;
};
nlohmann::json describe_trace(const Trace& trace);
void write_info(const Trace& trace, std::ostream& out);
std::vector<Finding> examine(const Trace& trace);

}  // namespace foretrace
