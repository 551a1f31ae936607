#include "ask/validate/metamorphic.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/files/temporary_file.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/render.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

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

}  // namespace

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

bool neutral_holds(const Graph& graph, const Timeline& replayed) {
  Graph same = graph.clone();
  read_transform({{"use", "scale"}, {"factor", 1.0}})->apply(same, {});
  const Timeline timeline = simulate(same, {.memory = false});
  return timeline.start == replayed.start && timeline.finish == replayed.finish;
}

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

StepTimes exported_step_times(const Graph& graph, const Timeline& replayed) {
  const TemporaryFile file(std::filesystem::temp_directory_path().string(), "foretrace", 0600);
  exporter_for(".json")->write(render(graph, replayed), file.path());
  const Inference again = infer(import_trace(file.path()));
  return step_times(again.graph, simulate(again.graph, {.memory = false}));
}

}  // namespace foretrace
