#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "ask/validate/cross_step.h"
#include "ask/validate/side_removal.h"
#include "base/files/temporary_file.h"
#include "base/statistics.h"
#include "foretrace/ask/predict.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/render.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

// Relations that must hold for any graph, whatever it was made from.

constexpr std::size_t kSmallGraph = 1000;

constexpr std::size_t kSample = 200;

constexpr std::size_t kAtOnce = 8;

std::vector<std::size_t> tasks_to_shrink(std::size_t count) {
  std::vector<std::size_t> tasks;
  if (count <= kSmallGraph) {
    for (std::size_t i = 0; i < count; ++i) tasks.push_back(i);
    return tasks;
  }
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < kSample; ++i) tasks.push_back(random() % count);
  return tasks;
}

std::int64_t tails(const Graph& graph) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < graph.task_count(); ++i)
    count += graph.task(static_cast<TaskId>(i)).tail.empty() ? 0 : 1;
  graph.each_dependency([&](const Dependency& wait) { count += wait.tail.empty() ? 0 : 1; });
  return count;
}

/// Whether everything takes exactly twice as long if all durations, gaps and lags are doubled.
bool doubling_holds(const Graph& graph, const Timeline& replayed) {
  Graph twice = graph.clone();
  for (std::size_t i = 0; i < twice.task_count(); ++i) {
    Task& task = twice.task(static_cast<TaskId>(i));
    task.duration *= 2;
    task.gap *= 2;
  }
  twice.change_dependencies([](Dependency& wait) { wait.lag *= 2; });
  const Timeline timeline = simulate(twice, {.memory = false});
  // Tails of tasks twice as long are twice as long only to the nanosecond.
  const Nanoseconds tolerance(tails(graph));
  return std::equal(timeline.finish.begin(), timeline.finish.end(), replayed.finish.begin(),
                    [&](Nanoseconds a, Nanoseconds b) { return abs(a - 2 * b) <= tolerance; });
}

/// Whether a transform by factor 1 changes no time.
bool neutral_holds(const Graph& graph, const Timeline& replayed) {
  Graph same = graph.clone();
  read_transform({{"use", "scale"}, {"factor", 1.0}})->apply(same, {});
  const Timeline timeline = simulate(same, {.memory = false});
  return timeline.start == replayed.start && timeline.finish == replayed.finish;
}

/// Whether the end never comes later if one task takes no time; tried for all tasks of a small
/// graph, and for a seeded sample of a large one.
bool shrinking_holds(const Graph& graph, const Timeline& replayed) {
  Compiled compiled(graph);
  const auto order = compiled.order();
  const auto durations = compiled.durations();
  std::vector<std::vector<Nanoseconds>> sets(kAtOnce, {durations.begin(), durations.end()});
  const std::vector<std::size_t> tasks = tasks_to_shrink(graph.task_count());
  for (std::size_t begin = 0; begin < tasks.size(); begin += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, tasks.size() - begin);
    std::vector<std::span<const Nanoseconds>> views;
    for (std::size_t i = 0; i < count; ++i) {
      sets[i][order[tasks[begin + i]]] = 0ns;
      views.emplace_back(sets[i]);
    }
    for (const Nanoseconds length : compiled.replay_all(views).lengths) {
      if (length > replayed.length) return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = order[tasks[begin + i]];
      sets[i][place] = durations[place];
    }
  }
  return true;
}

/// The step times after writing the timeline as Kineto JSON, reading and inferring it again, and
/// replaying.
StepTimes exported_step_times(const Graph& graph, const Timeline& replayed) {
  const TemporaryFile file(std::filesystem::temp_directory_path().string(), "foretrace", 0600);
  exporter_for(".json")->write(render(graph, replayed), file.path());
  const Inference again = infer(import_trace(file.path()));
  return step_times(again.graph, simulate(again.graph, {.memory = false}));
}

/// Share of a step by which the step time may differ after export, because times are rounded.
constexpr double kSameStepTime = 1e-4;
constexpr int kLeastAlikeSteps = 3;

double relative_error(Nanoseconds value, Nanoseconds truth) {
  if (truth == 0ns) return value == 0ns ? 0 : 1;
  return std::abs(static_cast<double>((value - truth).count())) /
         static_cast<double>(truth.count());
}

void add_errors(const CrossStep& cross, Validation& validation) {
  validation.alike_steps = cross.alike_steps;
  validation.same_as_first_error = cross.same_as_first;
  if (cross.errors.empty()) return;
  validation.cross_step_error = median(cross.errors);
  validation.worst_cross_step_error = *std::max_element(cross.errors.begin(), cross.errors.end());
}

Timeline describe(const Inference& inference, Validation& validation) {
  Timeline replayed = simulate(inference.graph, {.memory = false});
  validation.measured = step_times(inference.graph, inference.recorded).step_time;
  if (validation.measured <= 0ns)
    throw TraceError("nothing to simulate: no step of the trace takes any time");
  validation.replay_error =
      relative_error(step_times(inference.graph, replayed).step_time, validation.measured);
  validation.tasks = inference.graph.task_count();
  validation.unexplained = inference.graph.unexplained();
  validation.notes = inference.notes;
  return replayed;
}

}  // namespace

Validation validate(const Inference& inference, bool has_times) {
  Validation validation;
  const Timeline replayed = describe(inference, validation);
  const CrossStep cross = cross_step(inference, inference);
  if (cross.alike_steps >= kLeastAlikeSteps) {
    add_errors(cross, validation);
  } else {
    validation.alike_steps = cross.alike_steps;
    validation.notes.add(Severity::info,
                         "fewer than three alike steps: nothing to compare across steps");
  }
  validation.scale_holds = doubling_holds(inference.graph, replayed);
  validation.neutral_holds = neutral_holds(inference.graph, replayed);
  validation.shrink_holds = shrinking_holds(inference.graph, replayed);
  validation.without = remove_sides(inference);
  validation.export_holds = !has_times;
  if (!has_times) return validation;
  const Nanoseconds again = exported_step_times(inference.graph, replayed).step_time;
  const Nanoseconds before = step_times(inference.graph, replayed).step_time;
  validation.export_holds = relative_error(again, before) <= kSameStepTime;
  if (again != before) {
    validation.notes.add(Severity::info, "the step time differs after export and import",
                         fmt::format("{} became {}", to_text(before), to_text(again)));
  }
  return validation;
}

Validation validate_against(const Inference& structure, const Inference& work) {
  Validation validation;
  describe(structure, validation);
  const CrossStep cross = cross_step(structure, work);
  if (cross.errors.empty()) throw Error("no step of one recording is like a step of the other");
  add_errors(cross, validation);
  return validation;
}

}  // namespace foretrace
