#include "analysis/doubt/trust.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>

#include "analysis/doubt/ledger.h"
#include "analysis/doubt/memory_interval.h"
#include "analysis/doubt/side_removal.h"
#include "analysis/doubt/step_variation.h"
#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "foretrace/simulate.h"
#include "graph/recorder_time.h"
#include "job/job_graph.h"
#include "job/retimed_replay.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

/// A larger share of a step without a known cause is reported.
constexpr double kSomeOpen = 0.02;
/// An answer depends on unexplained time if a change makes it longer or shorter by this share of a
/// step.
constexpr double kTouched = 0.01;
constexpr double kSomePinned = 0.01, kManyPinned = 0.1;
constexpr double kLargeReplayError = 0.01;
/// A larger share of a step that is the profiler's own work makes its length doubtful.
constexpr double kMuchProfiler = 0.2;
/// Steps that were alike and now differ by more than this factor are not understood.
constexpr int kFarPaces = 2;
/// One or two outcomes may be right by chance.
constexpr int kFewestOutcomes = 3;
/// A kind that is typically further off, as a share of the step time, is not good. Chosen.
constexpr double kGreatestError = 0.2;
/// Known outcomes of a change come from jobs that it applies to.
constexpr double kMostlyApplies = 0.5;
/// A larger share of a peak in blocks of unknown use decides about the peak after a change. Chosen:
/// peaks of a language model were 9 to 17 % off where it was 68 %, and below 4 % where it was 5 %.
constexpr double kMuchUnknownUse = 0.2;
/// An answer from a recording without steps depends on host work that may happen once if more than
/// this share of it is gone. Chosen.
constexpr double kMuchOnce = 0.1;
/// An answer that is further below its bound, as a share of it, is refused.
constexpr double kMaxBelowBound = 0.01;

std::string_view step_word(const Prediction& prediction) {
  return prediction.has_steps ? "step" : "recording";
}

/// Part of an open time of the recording that remains in an edited graph.
Nanoseconds left_open(const Graph& recorded, const Graph& graph, const OpenTime& open) {
  if (!open.of_peers) return open.time;
  return scaled(open.time,
                ratio(graph.task(open.task).duration, recorded.task(open.task).duration));
}

/// The first few tasks of a recording start without a recorded cause, which is normal.
constexpr std::int64_t kFewPinned = 3;

Nanoseconds shorter(Nanoseconds time, Nanoseconds by) { return std::max(0ns, time - by); }

/// Open time of each task, of one kind.
std::map<TaskId, Nanoseconds> open_tasks(const Inference& inference, const Graph& graph,
                                         bool of_peers) {
  std::map<TaskId, Nanoseconds> tasks;
  for (const OpenTime& open : inference.open) {
    if (open.of_peers == of_peers && !graph.removed(open.task))
      tasks[open.task] += left_open(inference.graph, graph, open);
  }
  return tasks;
}

Retiming without_peers(const Inference& inference, const Graph& graph) {
  Retiming less;
  for (const auto& [task, time] : open_tasks(inference, graph, true))
    less.durations.emplace_back(task, shorter(graph.task(task).duration, time));
  return less;
}

Retiming without_unexplained(const Inference& inference, const Graph& graph) {
  const std::map<TaskId, Nanoseconds> tasks = open_tasks(inference, graph, false);
  Retiming less;
  for (const auto& [task, time] : tasks) {
    if (const Nanoseconds gap = graph.task(task).gap; gap > 0ns)
      less.gaps.emplace_back(task, shorter(gap, time));
  }
  std::size_t number = 0;
  graph.each_dependency([&](const Dependency& wait) {
    if (const auto found = tasks.find(wait.after); found != tasks.end() && wait.lag > 0ns)
      less.lags.emplace_back(number, shorter(wait.lag, found->second));
    ++number;
  });
  return less;
}

bool has_many_pins(const Graph& graph) { return graph.unexplained().pinned_tasks > kFewPinned; }

Nanoseconds step_time_of_clone(const Graph& graph, const Retiming& less, bool drops_pins) {
  Graph other = graph.clone();
  retime(other, less);
  if (drops_pins) {
    other.remove_dependencies(
        [](const Dependency& wait) { return wait.why == Rule::recorded_start; });
  }
  return replayed_step_time(other);
}

bool has_open(const Inference& inference, bool of_peers) {
  if (!of_peers && has_many_pins(inference.graph)) return true;
  return std::any_of(inference.open.begin(), inference.open.end(),
                     [&](const OpenTime& open) { return open.of_peers == of_peers; });
}

/// `compiled` is the structure of the graph, which has since been given the durations of `now`; or
/// nullptr.
OpenStepTime open_of(const Inference& inference, const Graph& graph, Nanoseconds step_time,
                     const Retiming& now, RetimedReplay* compiled) {
  const auto gain = [&](Retiming less, bool without_pins) {
    if (!compiled) return std::max(0ns, step_time - step_time_of_clone(graph, less, without_pins));
    less.durations.insert(less.durations.begin(), now.durations.begin(), now.durations.end());
    return std::max(0ns, step_time - compiled->step_time(less));
  };
  OpenStepTime open;
  if (has_open(inference, false))
    open.unexplained = gain(without_unexplained(inference, graph), has_many_pins(graph));
  if (has_open(inference, true)) open.other_ranks = gain(without_peers(inference, graph), false);
  return open;
}

Grade grade_between(double value, double fair, double poor) {
  return value > poor ? Grade::poor : value > fair ? Grade::fair : Grade::good;
}

/// Collects the facts of one answer.
class TrustFacts {
 public:
  /// `changes` says whether the answer is about a change, which open time can decide.
  TrustFacts(const Prediction& prediction, bool changes)
      : prediction_(prediction), changes_(changes) {}

  void add_recording() {
    add_replay();
    add_open("unexplained", &OpenStepTime::unexplained, "has no known cause",
             touches_unexplained());
    add_open("other_ranks", &OpenStepTime::other_ranks, "is time that only other ranks explain",
             changes_);
    add_pinned();
    add_steps();
    add_cut();
    add_side("without_device", prediction_.without.device, "device", "the host");
    add_side("without_host", prediction_.without.host, "host", "the device");
    add_profiler();
    for (const Shortcoming& lack : prediction_.unexplained.shortcomings) {
      if (lack.name == kRecorderReason && (!changes_ || is_unprofiled())) continue;
      add(lack.name, lack.is_fatal ? Grade::poor : Grade::fair, lack.text, lack.share, 0.0);
    }
  }

  void add_replayed_change() {
    add_bound();
    if (const auto paces = two_paces(prediction_.predicted, prediction_.baseline)) {
      const bool far = paces->slow > kFarPaces * paces->fast;
      add("paces", far ? Grade::poor : Grade::fair,
          fmt::format("{}, where the recorded ones differ by {}", to_text(*paces),
                      to_share(prediction_.baseline.spread)),
          prediction_.predicted.spread, kWideSpread);
    }
  }

  /// A change scales each block by what it is used for: weights stay, activations grow.
  void add_unknown_use() {
    for (const MemoryPeak& before : prediction_.baseline_memory) {
      const double share = ratio(before.unknown_use, before.peak_allocated);
      const bool moves = std::any_of(
          prediction_.predicted_memory.begin(), prediction_.predicted_memory.end(),
          [&](const MemoryPeak& after) {
            return after.device == before.device &&
                   std::abs(1 - ratio(after.peak_allocated, before.peak_allocated)) > kTouched;
          });
      if (before.device < 0 || !moves || share <= kMuchUnknownUse) continue;
      add("unknown_use", Grade::fair,
          fmt::format("{} of the peak of memory is in blocks of unknown use", to_share(share)),
          share, kMuchUnknownUse);
    }
  }

  /// A limit that was asked about has an answer of its own.
  void add_memory() {
    const Bytes most = prediction_.device_memory;
    if (most == Bytes{} || prediction_.memory_limit > Bytes{}) return;
    for (const MemoryPeak& peak : prediction_.predicted_memory) {
      if (peak.device < 0 || peak.peak_allocated <= most) continue;
      add("memory", Grade::poor,
          fmt::format("the predicted peak of {} does not fit into the {} of the device: the job "
                      "would run out of memory",
                      to_text(peak.peak_allocated), to_text(most)),
          ratio(peak.peak_allocated, most), 1.0);
      return;
    }
  }

  void add_changes(std::span<const KnownOutcome> user_outcomes) {
    if (is_what_if()) add_unknown_use();
    if (is_what_if()) add_memory();
    for (const AppliedStep& step : prediction_.steps) {
      add_applicability(step);
      add_once(step);
      for (const std::string& doubt : step.doubts)
        add("doubt", Grade::fair, fmt::format("{}: {}", kind_of(step.use), doubt));
    }
    for (const std::string& kind : kinds_of(prediction_.steps)) add_change(kind, user_outcomes);
  }

  Trust take() { return std::move(trust_); }

 private:
  bool is_what_if() const { return !prediction_.steps.empty(); }

  void add(std::string name, Grade grade, std::string text, std::optional<double> value = {},
           std::optional<double> limit = {}) {
    trust_.reasons.push_back({std::move(name), grade, std::move(text), value, limit});
  }

  void add_replay() {
    const double error = prediction_.replay_error;
    add("replay_error", error > kLargeReplayError ? Grade::poor : Grade::good,
        fmt::format("the unmodified replay is {} off", to_share(error, 3)), error,
        kLargeReplayError);
  }

  /// Whether the prediction has clearly more or less unexplained time in a step than the baseline.
  bool touches_unexplained() const {
    const Nanoseconds off =
        prediction_.predicted_open.unexplained - prediction_.baseline_open.unexplained;
    return changes_ && std::abs(ratio(off, prediction_.baseline.step_time)) > kTouched;
  }

  /// Whether the answer differs clearly from the baseline.
  bool moves() const {
    const Nanoseconds move = prediction_.predicted.step_time - prediction_.baseline.step_time;
    return std::abs(ratio(move, prediction_.baseline.step_time)) > kTouched;
  }

  /// Adds open time with the larger of two shares: of the recorded step, and of the predicted one.
  void add_open(const char* name, Nanoseconds OpenStepTime::*part, const char* predicate,
                bool depends) {
    const double before = ratio(prediction_.baseline_open.*part, prediction_.baseline.step_time);
    const double after =
        is_what_if() ? ratio(prediction_.predicted_open.*part, prediction_.predicted.step_time) : 0;
    const double share = std::max(before, after);
    Grade grade = grade_between(share, kSomeOpen, kMuchOpenTime);
    if (!depends) grade = std::min(grade, Grade::fair);
    const Unexplained& sums = prediction_.unexplained;
    const double of_all =
        ratio(part == &OpenStepTime::unexplained ? sums.lag : sums.peers, sums.window);
    if (grade == Grade::good && of_all > kMuchOpenTime)
      return add(name, Grade::fair,
                 fmt::format("{} of the recording {}, though hidden behind other work",
                             to_share(of_all), predicate),
                 of_all, kMuchOpenTime);
    add(name, grade,
        fmt::format("{} of the {}{} {}", to_share(share), after > before ? "predicted " : "",
                    step_word(prediction_), predicate),
        share, grade == Grade::fair ? kSomeOpen : kMuchOpenTime);
  }

  void add_pinned() {
    const auto pinned = static_cast<double>(prediction_.unexplained.pinned_tasks);
    const double share = pinned / static_cast<double>(std::max<std::size_t>(prediction_.tasks, 1));
    const bool few = prediction_.unexplained.pinned_tasks <= kFewPinned;
    Grade grade = few ? Grade::good : grade_between(share, kSomePinned, kManyPinned);
    if (!changes_) grade = std::min(grade, Grade::fair);
    add("pinned", grade, to_share(share) + " of the tasks are held at their recorded start", share,
        kSomePinned);
  }

  void add_steps() {
    const StepTimes& times = prediction_.measured;
    const std::size_t count = times.steps();
    const auto fewest = static_cast<double>(kFewSteps);
    if (!prediction_.has_steps)
      return add("steps", Grade::fair, "no steps were found: the whole recording stands for one",
                 0.0, fewest);
    add("steps", count < kFewSteps ? Grade::fair : Grade::good,
        count == 1 ? "1 step counts" : fmt::format("{} steps count", count),
        static_cast<double>(count), fewest);
    add("spread", times.spread > kWideSpread ? Grade::fair : Grade::good,
        "the steps differ by " + to_share(times.spread), times.spread, kWideSpread);
    const bool guessed = times.source == StepSource::period;
    add("steps_found", guessed ? Grade::fair : Grade::good,
        guessed ? "steps are found by repetition, not by markers"
                : "steps are found by markers of the recording");
  }

  /// Only a graph that mistakes one side's time for the other's keeps it when that side takes none.
  void add_side(const char* name, const SideRemoval& removal, std::string_view side,
                std::string_view other) {
    if (removal.holds()) return;
    add(name, changes_ ? Grade::poor : Grade::fair,
        fmt::format("{} of the recording is time of the {} that counts as time of {} or as a delay "
                    "(foretrace validate)",
                    to_share(removal.excess()), side, other),
        removal.excess(), SideRemoval::kMaxExcess);
  }

  /// Less work never takes more time; an answer that contradicts it comes from few unlike steps.
  void add_bound() {
    const Nanoseconds bound = prediction_.predicted_bound;
    if (bound <= 0ns) return;
    const double below = 1 - ratio(prediction_.predicted.step_time, bound);
    if (below <= kMaxBelowBound) return;
    add("below_bound", Grade::poor,
        fmt::format("the step takes {} even if the work that gets shorter took no time, so the "
                    "replay contradicts itself",
                    to_text(bound)),
        below, kMaxBelowBound);
  }

  /// A step is wanted as it is when nobody records it. The profiler's work may be hidden behind the
  /// device until a change makes that faster.
  void add_profiler() {
    if (prediction_.baseline_unprofiled <= 0ns || is_unprofiled()) return;
    const auto share_of = [](Nanoseconds without, Nanoseconds with) {
      return without <= 0ns ? 0 : 1 - ratio(without, with);
    };
    const double before = share_of(prediction_.baseline_unprofiled, prediction_.baseline.step_time);
    const double after =
        is_what_if() ? share_of(prediction_.predicted_unprofiled, prediction_.predicted.step_time)
                     : 0;
    const double most = std::max(before, after);
    if (most <= kMuchProfiler) return;
    add("profiler", Grade::fair,
        fmt::format("about {} of the {}{} is the profiler's own work (remove_profiler)",
                    to_share(most), after > before ? "predicted " : "", step_word(prediction_)),
        most, kMuchProfiler);
  }

  bool is_unprofiled() const {
    const std::vector<std::string> kinds = kinds_of(prediction_.steps);
    return std::find(kinds.begin(), kinds.end(), "remove_profiler") != kinds.end();
  }

  void add_cut() {
    if (const Note* note = cut_off_note(prediction_.notes))
      add(std::string(kCutOffReason), Grade::fair, note->text);
  }

  /// A change that is impossible for a program may still be an edit of its graph.
  void add_applicability(const AppliedStep& step) {
    const double share = step.applies.share;
    if (share >= 1) return;
    const bool impossible = share <= 0 && !step.changed_nothing && moves();
    add("applies",
        impossible               ? Grade::poor
        : share < kMostlyApplies ? Grade::fair
                                 : Grade::good,
        fmt::format("{} {}", step.use, to_text(step.applies)), share, kMostlyApplies);
  }

  /// Only steps that repeat show that host work does. One that is marked may well be typical.
  void add_once(const AppliedStep& step) {
    const double share = ratio(step.host_saved, prediction_.baseline.step_time);
    if (prediction_.measured.each.size() > 1 || share <= 0) return;
    const bool is_whole_run = !prediction_.has_steps && share > kMuchOnce;
    add("once", is_whole_run ? Grade::poor : Grade::fair,
        fmt::format("{} removes host work that takes {} of the {}; only more steps would show "
                    "which of it happens once, such as compiling and loading kernels",
                    kind_of(step.use), to_share(share), step_word(prediction_)),
        share, kMuchOnce);
  }

  void add_change(const std::string& kind, std::span<const KnownOutcome> user_outcomes) {
    if (!prediction_.has_times)
      return add_outcomes(fmt::format("what {} does to memory", kind), known_memory_outcomes(kind));
    const ErrorScale error = error_scale(kind, user_outcomes);
    if (error.scale <= 0)
      return add(
          "edit", Grade::fair,
          fmt::format(
              "{} is an edit: the interval covers its replay, not how well the edit describes "
              "the change",
              kind));
    const int outcomes = known_outcomes(kind, user_outcomes);
    if (outcomes >= kFewestOutcomes && error.scale > kGreatestError)
      return add("compared", Grade::fair,
                 fmt::format("{} was typically off by {} in {}", kind, to_share(error.scale),
                             counted(outcomes, "outcome")),
                 error.scale, kGreatestError);
    add_outcomes(kind, outcomes);
  }

  void add_outcomes(const std::string& subject, int outcomes) {
    add("compared", outcomes < kFewestOutcomes ? Grade::fair : Grade::good,
        outcomes == 0
            ? fmt::format("{} was never compared with an outcome", subject)
            : fmt::format("{} was compared with {}{}", subject,
                          outcomes < kFewestOutcomes ? "only " : "", counted(outcomes, "outcome")),
        outcomes, kFewestOutcomes);
  }

  const Prediction& prediction_;
  bool changes_;
  Trust trust_;
};

}  // namespace

bool has_open_time(const Inference& inference) {
  return has_open(inference, false) || has_open(inference, true);
}

OpenStepTime open_step_time(const Inference& inference, const Graph& graph, Nanoseconds step_time) {
  std::optional<RetimedReplay> compiled;
  if (has_open(inference, false) && has_open(inference, true) && !has_many_pins(graph) &&
      all_lanes_fifo(graph))
    compiled.emplace(graph);
  return open_of(inference, graph, step_time, {}, compiled ? &*compiled : nullptr);
}

Nanoseconds wait_for_ranks(const Inference& inference, const std::vector<OpenTime>& further,
                           Nanoseconds step_time) {
  if (further.empty() && !has_open(inference, true)) return 0ns;
  const Graph& graph = inference.graph;
  Retiming less = without_peers(inference, graph);
  for (const OpenTime& open : further)
    less.durations.emplace_back(open.task, shorter(graph.task(open.task).duration, open.time));
  return std::max(0ns, step_time - step_time_of_clone(graph, less, false));
}

void examine_baseline(const Inference& inference, RecordedRun& run) {
  run.baseline_open = open_step_time(inference, inference.graph, run.baseline.step_time);
  run.baseline_unprofiled = unprofiled_step_time(inference.graph);
  if (all_lanes_fifo(inference.graph)) run.without = remove_sides(inference);
}

OpenStepTime open_step_time(const Inference& inference, const Graph& graph, Nanoseconds step_time,
                            const Retiming& now, RetimedReplay& compiled) {
  return open_of(inference, graph, step_time, now, has_many_pins(graph) ? nullptr : &compiled);
}

Trust trust_of(const Prediction& prediction, std::span<const KnownOutcome> user_outcomes) {
  TrustFacts facts(prediction, !prediction.steps.empty());
  if (prediction.has_times) facts.add_recording(), facts.add_replayed_change();
  facts.add_changes(user_outcomes);
  return facts.take();
}

Trust trust_of_recording(const Prediction& baseline, AnswerAbout about) {
  TrustFacts facts(baseline, about == AnswerAbout::changes);
  if (baseline.has_times) facts.add_recording();
  return facts.take();
}

Trust trust_in_recording(const Inference& inference, const Notes& notes, AnswerAbout about) {
  const Graph& graph = inference.graph;
  Prediction facts;
  facts.measured = step_times(graph, inference.recorded);
  facts.baseline = step_times(graph, simulate(graph, {.reasons = false, .memory = false}));
  const Nanoseconds measured = facts.measured.step_time;
  if (measured <= 0ns) return {};
  facts.replay_error = std::abs(ratio(facts.baseline.step_time - measured, measured));
  facts.has_steps = !graph.steps().empty();
  facts.unexplained = graph.unexplained();
  facts.tasks = graph.task_count();
  examine_baseline(inference, facts);
  facts.notes = notes;
  return trust_of_recording(facts, about);
}

const Note* cut_off_note(const Notes& notes) {
  const auto found = std::find_if(notes.all().begin(), notes.all().end(), [](const Note& note) {
    return note.severity == Severity::warning && note.text.find("is cut off") != std::string::npos;
  });
  return found == notes.all().end() ? nullptr : &*found;
}

}  // namespace foretrace
