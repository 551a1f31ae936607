#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/scenario.h"
#include "foretrace/simulate.h"
#include "scenario/explain.h"
#include "scenario/inputs.h"
#include "scenario/interval.h"

namespace foretrace {
namespace {

/// An answer and what it was read from, so that the predicted timeline can be written.
struct Answer {
  Prediction prediction;
  Graph graph;
  Timeline timeline;
};

double ratio(Nanoseconds part, Nanoseconds whole) {
  return whole == 0ns ? 0 : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::vector<MemoryPeak> peaks_of(const Timeline& timeline) {
  std::vector<MemoryPeak> peaks;
  for (const MemoryCurve& curve : timeline.memory) peaks.push_back({curve.device, curve.peak, {}});
  return peaks;
}

/// The order of tasks on a lane counts as one structural dependency for each that stands behind
/// another.
void count_dependencies(const Graph& graph, Prediction& prediction) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.previous(TaskId{i}) == kNoTask) continue;
    ++prediction.dependencies[static_cast<int>(Provenance::structural)];
  }
  graph.each_dependency([&](const Dependency& wait) {
    ++prediction.dependencies[static_cast<int>(wait.provenance)];
  });
}

void note_assumptions(const std::vector<std::string>& assumptions, Prediction& prediction) {
  std::vector<std::string>& known = prediction.assumptions;
  for (const std::string& assumption : assumptions) {
    if (std::find(known.begin(), known.end(), assumption) == known.end())
      known.push_back(assumption);
  }
}

/// Refuses more time than the clock can count, should all of it pass in turn.
void check_length(const Graph& graph) {
  constexpr double kMost = 9.2e18;
  double total = 0;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    if (graph.removed(task)) continue;
    total += static_cast<double>(graph.task(task).duration.count());
    total += static_cast<double>(std::max(graph.task(task).gap, 0ns).count());
  }
  graph.each_dependency([&](const Dependency& wait) {
    total += static_cast<double>(std::max(wait.lag, 0ns).count());
  });
  if (total < kMost) return;
  throw Error("makes tasks take more than 292 years in all; use a smaller factor or time");
}

void apply_one(const Transform& transform, const std::string& use, Graph& graph,
               Prediction& prediction) {
  const Effect effect = within(use, [&] {
    Effect done = transform.apply(graph);
    check_length(graph);
    return done;
  });
  prediction.steps.push_back({use, effect.summary, effect.changed == 0});
  if (effect.changed == 0)
    prediction.notes.add(Severity::warning, "a step of the scenario changed nothing", use);
  note_assumptions(effect.assumptions, prediction);
  prediction.notes.merge(effect.notes);
}

/// The one place where transforms are applied.
void apply(const Scenario& scenario, Graph& graph, Prediction& prediction) {
  if (!scenario.machine.empty()) {
    const auto machine = read_transform({{"use", "faster_device"}, {"to", scenario.machine}});
    apply_one(*machine, "faster_device:to=" + scenario.machine, graph, prediction);
  }
  for (std::size_t i = 0; i < scenario.transforms.size(); ++i) {
    const std::string use =
        i < scenario.uses.size() ? scenario.uses[i] : "transform " + std::to_string(i);
    apply_one(*scenario.transforms[i], use, graph, prediction);
  }
}

bool edits(const Scenario& scenario) {
  return !scenario.transforms.empty() || !scenario.machine.empty();
}

void describe_baseline(const Inference& inference, const Timeline& replayed,
                       Prediction& prediction) {
  const Graph& graph = inference.graph;
  prediction.measured = step_times(graph, inference.recorded);
  prediction.baseline = step_times(graph, replayed);
  prediction.has_steps = !graph.steps().empty();
  prediction.unexplained = graph.unexplained();
  prediction.window = graph.unexplained().window;
  prediction.tasks = graph.task_count();
  prediction.baseline_breakdown = breakdown(graph, replayed);
  prediction.baseline_memory = peaks_of(replayed);
  count_dependencies(graph, prediction);
  const Nanoseconds measured = prediction.measured.step_time;
  if (measured <= 0ns) throw TraceError("nothing to simulate: no step of the trace takes any time");
  prediction.replay_error = std::abs(ratio(prediction.baseline.step_time - measured, measured));
  if (prediction.replay_error > 0.01) {
    prediction.notes.add(
        Severity::warning,
        "the unmodified replay does not reproduce the recording; do not trust what-ifs on it",
        to_percent(prediction.replay_error, 2) + " off");
  }
}

void describe_prediction(const Graph& graph, const Timeline& timeline, Prediction& prediction) {
  prediction.predicted = step_times(graph, timeline);
  prediction.predicted_breakdown = breakdown(graph, timeline);
  prediction.predicted_memory = peaks_of(timeline);
  if (prediction.predicted.step_time <= 0ns)
    throw Error("nothing to simulate: the scenario leaves no work in a step");
  prediction.speedup = ratio(prediction.baseline.step_time, prediction.predicted.step_time);
}

void set_interval(const Graph& graph, const Timeline& timeline, Prediction& prediction) {
  std::vector<std::string> uses;
  for (const AppliedStep& step : prediction.steps) uses.push_back(step.use);
  const Interval interval = interval_of(
      {.measured = prediction.measured,
       .baseline = prediction.baseline.step_time,
       .predicted = prediction.predicted.step_time,
       .replay_error = prediction.replay_error,
       .unexplained = prediction.unexplained,
       .inferred_share = prediction.steps.empty() || timeline.reasons.empty()
                             ? 0
                             : ratio(time_on_inferred_waits(graph, timeline), timeline.length),
       .uses = std::move(uses)});
  prediction.lower = interval.lower;
  prediction.upper = interval.upper;
  prediction.interval_source = interval.source;
}

Answer answer(const Inference& inference, const Scenario& scenario, const PredictOptions& options) {
  Answer answer;
  Prediction& prediction = answer.prediction;
  prediction.scenario_json = write_scenario(scenario).dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);  // Names may hold any bytes.
  prediction.notes = inference.notes;
  prediction.assumptions = inference.assumptions;
  const bool what_if = edits(scenario);
  Timeline replayed = simulate(inference.graph, {.reasons = options.explain && !what_if});
  describe_baseline(inference, replayed, prediction);
  const Graph* graph = &inference.graph;
  if (what_if) {
    answer.graph = inference.graph.clone();
    apply(scenario, answer.graph, prediction);
    answer.timeline = simulate(answer.graph, {.reasons = true});
    graph = &answer.graph;
    describe_prediction(*graph, answer.timeline, prediction);
  } else {
    if (!options.perfetto_path.empty()) answer.graph = inference.graph.clone();
    answer.timeline = std::move(replayed);
    prediction.predicted = prediction.baseline;
    prediction.predicted_breakdown = prediction.baseline_breakdown;
    prediction.predicted_memory = prediction.baseline_memory;
  }
  set_interval(*graph, answer.timeline, prediction);
  if (what_if && prediction.predicted.step_time == prediction.baseline.step_time) {
    prediction.notes.add(
        Severity::info,
        "the step time does not change: what the scenario speeds up or slows down is not what "
        "steps wait for");
  }
  if (options.explain) prediction.explained = explain(*graph, answer.timeline);
  return answer;
}

/// The greatest level the allocator's own records tell of; nothing where they do not.
void add_reserved(const Trace& trace, std::vector<MemoryPeak>& peaks) {
  for (MemoryPeak& peak : peaks) {
    std::int64_t most = -1;
    for (const MemoryRecord& record : trace.memory) {
      if (record.device == peak.device) most = std::max(most, record.total_reserved);
    }
    if (most > 0) peak.peak_reserved = Bytes{most};
  }
}

/// Errors of the trace say which; those of the scenario are about all ranks.
Answer answer(const Trace& trace, const std::string& place, const Scenario& scenario,
              const PredictOptions& options) try {
  const Inference inference = infer(trace);
  Answer result = answer(inference, scenario, options);
  Notes notes;
  notes.merge(trace.notes);
  notes.merge(result.prediction.notes);
  result.prediction.notes = std::move(notes);
  add_reserved(trace, result.prediction.baseline_memory);
  if (!edits(scenario)) result.prediction.predicted_memory = result.prediction.baseline_memory;
  return result;
} catch (const TraceError& error) {
  throw TraceError(place + ": " + error.what());
}

/// What was odd about the recordings of ranks other than the one that is shown.
void add_warnings(const std::vector<Trace>& traces, std::size_t shown, Notes& notes) {
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (i == shown) continue;
    for (const Note& note : traces[i].notes.all()) {
      if (note.severity != Severity::warning) continue;
      notes.add(note.severity, note.text, note.example, note.count);
    }
  }
}

/// What is said of the job as recorded, from the rank that was the slowest then.
void take_recorded(const Prediction& from, Prediction& to) {
  to.measured = from.measured;
  to.window = from.window;
  to.has_steps = from.has_steps;
  to.baseline = from.baseline;
  to.replay_error = from.replay_error;
  to.unexplained = from.unexplained;
  to.tasks = from.tasks;
  std::copy(std::begin(from.dependencies), std::end(from.dependencies), to.dependencies);
  to.baseline_breakdown = from.baseline_breakdown;
  to.baseline_memory = from.baseline_memory;
  to.speedup = ratio(to.baseline.step_time, to.predicted.step_time);
}

/// The rank with the longest predicted step, as the others wait for it, compared with the rank that
/// had the longest step before.
Answer slowest(const std::vector<Trace>& traces, const std::string& path, const Scenario& scenario,
               const PredictOptions& options) {
  Answer worst;
  std::size_t worst_index = 0;
  std::size_t worst_now = 0;
  Prediction now;
  std::string all;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const std::string rank = "rank " + std::to_string(traces[i].rank);
    Answer next =
        answer(traces[i], traces.size() == 1 ? path : path + ": " + rank, scenario, options);
    all += (all.empty() ? "" : ", ") + rank + ": ";
    if (edits(scenario)) all += to_text(next.prediction.baseline.step_time) + " -> ";
    all += to_text(next.prediction.predicted.step_time);
    if (i == 0 || next.prediction.baseline.step_time > now.baseline.step_time) {
      now = next.prediction;
      worst_now = i;
    }
    if (i == 0 || next.prediction.predicted.step_time > worst.prediction.predicted.step_time) {
      worst = std::move(next);
      worst_index = i;
    }
  }
  if (worst_now != worst_index) take_recorded(now, worst.prediction);
  if (traces.size() > 1) {
    add_warnings(traces, worst_index, worst.prediction.notes);
    worst.prediction.notes.add(
        Severity::info,
        "each rank was predicted alone; the answer is the slowest, rank " +
            std::to_string(traces[worst_index].rank) +
            (worst_now == worst_index
                 ? ""
                 : "; as recorded it is rank " + std::to_string(traces[worst_now].rank) + " with " +
                       to_text(now.baseline.step_time)),
        all);
  }
  return worst;
}

void refuse_warnings(const Notes& notes) {
  for (const Note& note : notes.all()) {
    if (note.severity != Severity::warning) continue;
    std::string detail = note.count > 1 ? std::to_string(note.count) + " times" : "";
    if (!note.example.empty()) detail += (detail.empty() ? "" : ", first: ") + note.example;
    throw TraceError("refused because of --strict: " + note.text +
                     (detail.empty() ? "" : " (" + detail + ")"));
  }
}

void finish(const Answer& answer, const PredictOptions& options) {
  if (options.strict) refuse_warnings(answer.prediction.notes);
  if (!options.perfetto_path.empty())
    write_kineto(answer.graph, answer.timeline, options.perfetto_path);
}

}  // namespace

Prediction predict(const std::string& trace_path, const Scenario& scenario,
                   const PredictOptions& options) {
  const std::vector<Trace> traces = import_all(
      trace_path,
      {.cache_folder = options.cache_folder, .execution_trace = options.execution_trace});
  Answer answer = slowest(traces, trace_path, scenario, options);
  answer.prediction.inputs = input_files(trace_path, traces);
  finish(answer, options);
  return std::move(answer.prediction);
}

Prediction predict(const Inference& inference, const Scenario& scenario,
                   const PredictOptions& options) {
  Answer result = answer(inference, scenario, options);
  finish(result, options);
  return std::move(result.prediction);
}

}  // namespace foretrace
