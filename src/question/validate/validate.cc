#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <vector>

#include "analysis/doubt/side_removal.h"
#include "analysis/match/step_work.h"
#include "analysis/match/transplant.h"
#include "base/files/temporary_file.h"
#include "base/statistics.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/question/predict.h"
#include "foretrace/render.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

// Shows whether the causes of times were found, or the times merely copied: replays the
// dependencies and lags of one step with only the work of another, and compares the result with the
// other step's time. A step starts with the first device work launched in it, so the work between
// two starts is the work of the step after its first launch, and the work of the next step before
// its own:
//
//     work from   |      step B      | head of B+1
//     put into    |      step A      | head of A+1         expected: start of B -> start of B+1

struct CrossStep {
  int alike_steps = 0;
  std::vector<double> errors;  ///< One for each ordered pair of alike steps.
  std::optional<double> same_as_first;
};

/// Most steps used of each recording; they are spread evenly if there are more.
constexpr std::size_t kMaxSteps = 12;

/// Replays one graph any number of times with some durations changed.
class StepReplayer {
 public:
  explicit StepReplayer(const Graph& graph) : graph_(graph), compiled_(graph) {
    timeline_.start.resize(graph.task_count());
    timeline_.finish.resize(graph.task_count());
  }

  StepTimes replay(const std::vector<const Transplant*>& changes) {
    const auto order = compiled_.order();
    const auto durations = compiled_.durations();
    std::vector<std::pair<std::size_t, Nanoseconds>> saved;
    for (const Transplant* change : changes) {
      for (const auto& [task, duration] : change->durations) {
        const std::size_t place = order[index(task)];
        saved.emplace_back(place, durations[place]);
        durations[place] = duration;
      }
    }
    timeline_.length = compiled_.replay();
    const auto finish = compiled_.finish();
    for (std::size_t i = 0; i < order.size(); ++i) {
      timeline_.finish[i] = finish[order[i]];
      timeline_.start[i] = finish[order[i]] - durations[order[i]];
    }
    for (auto change = saved.rbegin(); change != saved.rend(); ++change)
      durations[change->first] = change->second;
    return step_times(graph_, timeline_);
  }

 private:
  const Graph& graph_;
  Compiled compiled_;
  Timeline timeline_;
};

/// Returns `count` of the numbers 0 .. size - 1, spread evenly.
std::vector<std::size_t> spread(std::size_t size, std::size_t count) {
  std::vector<std::size_t> all;
  const std::size_t taken = std::min(size, count);
  for (std::size_t i = 0; i < taken; ++i) all.push_back(i * size / taken);
  return all;
}

std::optional<double> same_as_first(const StepTimes& measured) {
  std::vector<double> errors;
  const auto first = static_cast<double>(measured.each.front().count());
  for (std::size_t i = 1; i < measured.each.size(); ++i) {
    const auto truth = static_cast<double>(measured.each[i].count());
    if (truth > 0) errors.push_back(std::abs(first - truth) / truth);
  }
  if (errors.empty()) return {};
  return median(std::move(errors));
}

/// Structure and work may come from the same recording, or from two of the same job.
CrossStep cross_step(const Inference& structure, const Inference& work) {
  CrossStep result;
  const bool same = &structure == &work;
  Names names;
  const StepWork into(structure, names);
  const StepWork from(work, names);
  const StepTimes measured = step_times(work.graph, work.recorded);
  if (into.count() < 2 || from.count() < 2) return result;
  if (same) result.same_as_first = same_as_first(measured);

  StepReplayer replayer(structure.graph);
  std::vector<char> alike(from.count(), 0);
  for (const std::size_t a : spread(into.count() - 1, kMaxSteps)) {
    for (const std::size_t b : spread(from.count() - 1, kMaxSteps)) {
      if (same && a == b) continue;
      const Transplant step = transplant(into.lines(a), from.lines(b));
      if (!step.alike()) continue;
      alike[b] = 1;
      if (same) alike[a] = 1;
      const Transplant head = transplant(into.head(a + 1), from.head(b + 1));
      const StepTimes times = replayer.replay({&step, &head});
      const auto truth = static_cast<double>(measured.each[b].count());
      if (a < times.each.size() && truth > 0) {
        result.errors.push_back(std::abs(static_cast<double>(times.each[a].count()) - truth) /
                                truth);
      }
    }
  }
  // The last step has no next one to measure a distance to, but counts as alike.
  if (same) {
    for (std::size_t a = 0; a + 1 < into.count() && !alike.back(); ++a) {
      if (alike[a]) alike.back() = transplant(into.lines(a), from.lines(from.count() - 1)).alike();
    }
  }
  result.alike_steps = static_cast<int>(std::count(alike.begin(), alike.end(), 1));
  return result;
}

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
constexpr int kMinAlikeSteps = 3;

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
  if (cross.alike_steps >= kMinAlikeSteps) {
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
