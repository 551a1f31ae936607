#include "ask/validate/cross_step.h"

#include <algorithm>
#include <cmath>

#include "ask/interval/transplant.h"
#include "ask/job/step_work.h"
#include "base/statistics.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// Most steps used of each recording; they are spread evenly if there are more.
constexpr std::size_t kMostSteps = 12;

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

}  // namespace

CrossStep cross_step(const Inference& structure, const Inference& work) {
  CrossStep result;
  const bool same = &structure == &work;
  KeyTable keys;
  const StepWork into(structure, keys);
  const StepWork from(work, keys);
  const StepTimes measured = step_times(work.graph, work.recorded);
  if (into.count() < 2 || from.count() < 2) return result;
  if (same) result.same_as_first = same_as_first(measured);

  StepReplayer replayer(structure.graph);
  std::vector<char> alike(from.count(), 0);
  for (const std::size_t a : spread(into.count() - 1, kMostSteps)) {
    for (const std::size_t b : spread(from.count() - 1, kMostSteps)) {
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

}  // namespace foretrace
