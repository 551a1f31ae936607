#include "scenario/cross_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "scenario/align.h"
#include "scenario/step_work.h"

namespace foretrace {
namespace {

/// Steps are taken as alike when at least this share of what they launch corresponds, on every
/// lane, and of their tasks or work. The number of host tasks alone would not do: many take less
/// than the resolution of a trace, and come and go.
constexpr double kAlike = 0.9;
/// Steps looked at in each recording; spread over all of them if there are more.
constexpr std::size_t kMostSteps = 12;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// How much of two runs of tasks corresponds.
struct Match {
  double matched = 0, total = 0;
  bool good() const { return matched >= kAlike * total; }
};

/// Work of one run of tasks put into another.
struct Transplant {
  std::vector<std::pair<TaskId, Nanoseconds>> durations;
  Match tasks, work_into, work_from;
  bool same_launches = true;
  bool alike() const {
    return tasks.total > 0 && same_launches &&
           (tasks.good() || (work_into.good() && work_from.good()));
  }
};

void count_line(const StepLine& line, Match& launched, Match& work) {
  for (std::size_t i = 0; i < line.tasks.size(); ++i) {
    launched.total += line.launched[i] ? 0.5 : 0;
    work.total += static_cast<double>(line.durations[i].count());
  }
}

void count_pair(const StepLine& into, std::size_t a, const StepLine& from, std::size_t b,
                Match& launched, Transplant& result) {
  result.tasks.matched += 1;
  launched.matched += into.launched[a] ? 1 : 0;
  result.work_into.matched += static_cast<double>(into.durations[a].count());
  result.work_from.matched += static_cast<double>(from.durations[b].count());
}

/// Work without a partner goes to the nearest task with one in front of it, or behind it at the
/// beginning of a line.
void transplant_line(const StepLine& into, const StepLine& from, Transplant& result) {
  result.tasks.total += static_cast<double>(std::max(into.tasks.size(), from.tasks.size()));
  Match launched;
  count_line(into, launched, result.work_into);
  count_line(from, launched, result.work_from);
  const std::size_t most = 20 + (into.tasks.size() + from.tasks.size()) / 5;
  const auto pairs = align(into.keys, from.keys, std::min<std::size_t>(most, 4000));
  std::vector<Nanoseconds> work(into.tasks.size(), 0ns);
  std::size_t next_from = 0, at = 0;
  const auto take_until = [&](std::size_t end) {
    for (; next_from < end; ++next_from) {
      if (!work.empty()) work[at] += from.durations[next_from];
    }
  };
  if (pairs) {
    if (!pairs->empty()) at = pairs->front().first;
    for (const auto& [a, b] : *pairs) {
      take_until(b);
      at = a;
      work[at] += from.durations[b];
      count_pair(into, a, from, b, launched, result);
      next_from = b + std::size_t{1};
    }
  }
  take_until(from.tasks.size());
  if (!launched.good()) result.same_launches = false;
  for (std::size_t i = 0; i < work.size(); ++i)
    result.durations.emplace_back(into.tasks[i], work[i]);
}

/// Lines of the two that are of the same lane; work of other lanes has no place to go to.
Transplant transplant(const std::map<LaneKey, StepLine>& into,
                      const std::map<LaneKey, StepLine>& from) {
  static const StepLine nothing;
  Transplant result;
  for (const auto& [lane, line] : into) {
    const auto found = from.find(lane);
    transplant_line(line, found == from.end() ? nothing : found->second, result);
  }
  for (const auto& [lane, line] : from) {
    if (!into.contains(lane)) transplant_line(nothing, line, result);
  }
  return result;
}

/// Replays one graph again and again with some durations changed.
class Bench {
 public:
  explicit Bench(const Graph& graph) : graph_(graph), compiled_(graph) {
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

/// `count` of 0 .. size - 1, spread evenly.
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

  Bench bench(structure.graph);
  std::vector<char> alike(from.count(), 0);
  for (const std::size_t a : spread(into.count() - 1, kMostSteps)) {
    for (const std::size_t b : spread(from.count() - 1, kMostSteps)) {
      if (same && a == b) continue;
      const Transplant step = transplant(into.lines(a), from.lines(b));
      if (!step.alike()) continue;
      alike[b] = 1;
      if (same) alike[a] = 1;
      const Transplant head = transplant(into.head(a + 1), from.head(b + 1));
      const StepTimes times = bench.replay({&step, &head});
      const auto truth = static_cast<double>(measured.each[b].count());
      if (a < times.each.size() && truth > 0) {
        result.errors.push_back(std::abs(static_cast<double>(times.each[a].count()) - truth) /
                                truth);
      }
    }
  }
  // The last step has no distance to a next one, but counts.
  if (same) {
    for (std::size_t a = 0; a + 1 < into.count() && !alike.back(); ++a) {
      if (alike[a]) alike.back() = transplant(into.lines(a), from.lines(from.count() - 1)).alike();
    }
  }
  result.alike_steps = static_cast<int>(std::count(alike.begin(), alike.end(), 1));
  return result;
}

}  // namespace foretrace
