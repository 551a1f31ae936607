#pragma once

// The answer to "what if?": the job as measured, as its graph replays it, and as predicted.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/applicability.h"
#include "foretrace/answer/figure.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/answer/training.h"
#include "foretrace/answer/trust.h"
#include "foretrace/answer/validation.h"
#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct InputFile {
  std::string path, format, sha256;
};

/// A request for memory that was not served.
struct Refusal {
  std::string op, stack;  ///< Op and stack that requested it; may be empty.
  std::string phase;      ///< "backward"; empty if unknown.
  std::int32_t step = -1;
  Nanoseconds time{0};
  Bytes requested{}, allocated{}, reserved{}, limit{};
};

struct MemoryPeak {
  std::int32_t device = 0;
  Bytes peak_allocated{};
  Bytes unknown_use{};  ///< Part of it in blocks of unknown use; only set for a baseline.
  /// Peak that the caching allocator reserves, if it starts empty and serves the blocks of the
  /// timeline; empty for host memory.
  std::optional<Bytes> peak_reserved{};
  /// The 80 % interval of the peak; only for a single prediction, and only if the error of this
  /// kind of what-if is known.
  std::optional<Bytes> lower_allocated{}, upper_allocated{};
  std::optional<Bytes> recorded_reserved{};  ///< Recorded peak of the baseline, if there is one.
  std::optional<Refusal> out_of_memory{};    ///< First refusal under the limit in question.
};

struct AppliedStep {
  std::string use;  ///< The transform with its settings, as for --with.
  std::string summary;
  bool changed_nothing = false;
  std::vector<Figure> figures{};
  Applicability applies{};
  TimesError times_error{};
  TransferDoubt transfers{};
  std::vector<std::string> doubts{};  ///< Why the grade is fair at best.
  Nanoseconds host_saved{0};          ///< In all steps, as Effect::host_saved.
  double slower = 1;                  ///< Up to this many times the step time is possible.
  double samples = 1;                 ///< Those of a step, relative to before.
  std::int64_t parts = 1;             ///< Into which they are divided.
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

/// Steps of one kind, where steps differ so much that no single one is typical: medians,
/// or the step time for the typical kind.
struct StepsAlike {
  std::size_t steps = 0;
  Nanoseconds measured{0}, predicted{0};
  bool is_typical = false;  ///< Whether the step time and its interval are those of this kind.
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
  double peak_flops = 0;           ///< Per second, in the faster of fp16 and bf16; 0: unknown.
  std::string peak_of;             ///< "A100-SXM4-40GB"
  double samples = 0, tokens = 0;  ///< In a step, as the user says; 0: unknown.
};

/// The sum of the figures with this name, which must be times, over all steps; 0 if none has it.
Nanoseconds total_time(const std::vector<AppliedStep>& steps, std::string_view figure);

/// Achieved share of the peak. Returns nullopt if either is unknown, or if `flops` accounts for
/// less than half of the time of arithmetic.
std::optional<double> flops_utilization(const StepRates& rates, Nanoseconds step_time);
/// Share of a step in which only communication runs.
double exposed_communication(const Breakdown& breakdown, Nanoseconds step_time);

/// A rank as it was recorded, and as its graph replays it.
struct RecordedRun {
  StepTimes measured;
  Nanoseconds window{0};
  bool has_steps = false;  ///< If false, step times are those of the whole window.
  bool has_times = true;   ///< False for a memory snapshot, which has no step time.

  StepTimes baseline;
  double replay_error = 0;
  Unexplained unexplained;
  OpenStepTime baseline_open;
  /// Step time of the baseline without the recorder's own work on the host; 0: not known.
  Nanoseconds baseline_unprofiled{0};
  SideRemovals without;  ///< As `foretrace validate` checks them.
  std::size_t tasks = 0;
  std::size_t dependencies[4] = {};  ///< Indexed by Provenance.
  Breakdown baseline_breakdown;
  StepRates baseline_rates;
};

/// One of several ranks that wait for each other. Ranks that are alike have the first as their only
/// entry.
struct PredictedRank : RankFacts {
  std::size_t alike = 0;    ///< Other ranks that are provably like it.
  bool is_recorded = true;  ///< If false, it is assumed to be like a recorded one.
  Nanoseconds measured{0}, baseline{0}, predicted{0};  ///< Step times.
  std::vector<Nanoseconds> predicted_steps = {};
  Breakdown baseline_breakdown, predicted_breakdown;
};

/// The answer of `predict`. Recorded facts are those of the rank that was slowest when recorded,
/// predicted ones those of the rank predicted to be slowest, and memory is that of the fullest.
struct Prediction : RecordedRun {
  std::vector<InputFile> inputs;
  std::string scenario_json;  ///< Effective settings, as JSON text.

  std::vector<MemoryPeak> baseline_memory;

  StepTimes predicted;
  OpenStepTime predicted_open;
  Nanoseconds predicted_unprofiled{0};  ///< As baseline_unprofiled.
  /// Step time if all work that the scenario made shorter took no time at all, which no answer can
  /// fall below; 0: not known.
  Nanoseconds predicted_bound{0};
  Nanoseconds lower{0}, upper{0};
  /// Interval of predicted_breakdown.compute; 0 where no kernel runs.
  Nanoseconds compute_lower{0}, compute_upper{0};
  std::string interval_source;  ///< Where the interval comes from, in words.
  std::vector<IntervalPart> interval_parts;
  std::int64_t resamples = 0;          ///< Replays that the interval comes from; 0: none.
  std::vector<StepsAlike> step_kinds;  ///< In ascending order of time; empty if steps are alike.
  Breakdown predicted_breakdown;
  std::vector<MemoryPeak> predicted_memory;
  Bytes memory_limit{};   ///< Limit, or memory of the machine, that was asked about; 0: none.
  Bytes device_memory{};  ///< Of the device that the predicted work runs on; 0: not known.
  std::vector<std::string> assumptions;
  double speedup = 1;  ///< baseline step time / predicted step time.
  StepRates predicted_rates;

  std::int32_t rank = 0;             ///< The rank that is shown.
  std::vector<PredictedRank> ranks;  ///< Empty for a single rank.
  std::vector<AppliedStep> steps;
  std::vector<Explained> explained;     ///< Only with --explain.
  std::optional<TrainingRun> training;  ///< Empty if not asked for.
  Trust trust;
  Notes notes;
};

class Document;
/// For people, in every form.
Document document_of(const Prediction& prediction);
/// The object of "Contracts" in docs/design.md, with schema "foretrace.prediction/1".
nlohmann::json to_json(const Prediction& prediction);
/// One line of figures.
void write_csv(const Prediction& prediction, std::ostream& out);

}  // namespace foretrace
