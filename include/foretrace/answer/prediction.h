#pragma once

// The answer to "what if?": the job as measured, as its graph replays it, and as predicted.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/figure.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/answer/trust.h"
#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct InputFile {
  std::string path, format, sha256;
};

/// A request for memory that was not served.
struct Refusal {
  std::string op, stack;  ///< The op and stack of the request; may be empty.
  std::string phase;      ///< "backward"; empty where unknown.
  std::int32_t step = -1;
  Nanoseconds time{0};
  Bytes requested{}, allocated{}, reserved{}, limit{};
};

struct MemoryPeak {
  std::int32_t device = 0;
  Bytes peak_allocated{};
  /// Peak that the caching allocator reserves if it starts empty and serves the blocks of the
  /// timeline; empty for host memory.
  std::optional<Bytes> peak_reserved{};
  /// The interval of the peak in four of five such changes; only for a single prediction, and only
  /// if the error of this kind of what-if is known.
  std::optional<Bytes> lower_allocated{}, upper_allocated{};
  std::optional<Bytes>
      recorded_reserved{};                 ///< Recorded peak of the baseline, if the trace has it.
  std::optional<Refusal> out_of_memory{};  ///< The first, under the limit that was asked about.
};

struct AppliedStep {
  std::string use;  ///< With its settings, as could be given to --with.
  std::string summary;
  bool changed_nothing = false;
  std::vector<Figure> figures{};
};

/// One line of --explain: a task on the critical path and its reason to wait.
struct Explained {
  std::string task, lane, reason;
  Nanoseconds start{0}, duration{0}, waited{0};
};

/// One source of doubt, and how far it alone moves the predicted step time.
struct IntervalPart {
  std::string source;  ///< "steps", "inferred", "model", "replay".
  Nanoseconds lower{0}, upper{0};
  std::string text;  ///< In words.
};

/// How much shorter a step would be without time that the recording does not explain: delays
/// without a cause, and waits of collectives for other ranks.
struct OpenStepTime {
  Nanoseconds unexplained{0}, other_ranks{0};
};

/// The amount of work that a rank does in a step, as far as known.
struct StepRates {
  /// Counts matrix products and convolutions whose shapes were recorded; 0: not known.
  double flops = 0;
  /// Share of the time of kernels bound by arithmetic that `flops` accounts for.
  double known_share = 0;
  double peak_flops = 0;           ///< A second, in the fastest of fp16 and bf16; 0: not known.
  std::string peak_of;             ///< "A100-SXM4-40GB"
  double samples = 0, tokens = 0;  ///< As the user says; 0: not known.
};

/// The sum of the figures of this name, which are times, over all steps; 0 if none has it.
Nanoseconds total_time(const std::vector<AppliedStep>& steps, std::string_view figure);

/// Achieved share of the peak; nothing where either is not known.
std::optional<double> flops_utilization(const StepRates& rates, Nanoseconds step_time);
/// Share of a step in which only communication runs.
double exposed_communication(const Breakdown& breakdown, Nanoseconds step_time);

/// A rank as it was recorded, and as its graph replays it.
struct RecordedRun {
  StepTimes measured;
  Nanoseconds window{0};
  bool has_steps = false;  ///< If false, step times are those of the whole window.
  bool has_times = true;   ///< False for a memory snapshot: its times are those of its history.

  StepTimes baseline;
  double replay_error = 0;
  Unexplained unexplained;
  OpenStepTime baseline_open;
  std::size_t tasks = 0;
  std::size_t dependencies[4] = {};  ///< Indexed by Provenance.
  Breakdown baseline_breakdown;
  StepRates baseline_rates;
};

/// One of several ranks that wait for each other; of alike ranks the first.
struct PredictedRank : RankFacts {
  std::size_t alike = 0;    ///< Other ranks that are provably like it.
  bool is_recorded = true;  ///< If not, it is taken to be like one that was.
  Nanoseconds measured{0}, baseline{0}, predicted{0};  ///< Step times.
  std::vector<Nanoseconds> predicted_steps = {};
  Breakdown baseline_breakdown, predicted_breakdown;
};

/// The answer of `predict`. Of the rank that was the slowest when recorded, and of the one that is
/// predicted to be; what is said of memory is of the fullest.
struct Prediction : RecordedRun {
  std::vector<InputFile> inputs;
  std::string scenario_json;  ///< Effective settings, as JSON text.

  std::vector<MemoryPeak> baseline_memory;

  StepTimes predicted;
  OpenStepTime predicted_open;
  Nanoseconds lower{0}, upper{0};
  std::string interval_source;  ///< Where the interval comes from, in words.
  std::vector<IntervalPart> interval_parts;
  std::int64_t resamples = 0;  ///< Replays that the interval comes from; 0: none.
  Breakdown predicted_breakdown;
  std::vector<MemoryPeak> predicted_memory;
  Bytes memory_limit{};  ///< That was asked about, or of the machine that was; 0: none.
  std::vector<std::string> assumptions;
  double speedup = 1;  ///< baseline step time / predicted step time.
  StepRates predicted_rates;

  std::int32_t rank = 0;             ///< The one that is shown.
  std::vector<PredictedRank> ranks;  ///< Empty for a single one.
  std::vector<AppliedStep> steps;
  std::vector<Explained> explained;  ///< Only with --explain.
  Trust trust;
  Notes notes;
};

}  // namespace foretrace
