#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>

#include "base/wide.h"
#include "foretrace/timeline.h"

namespace foretrace {
namespace {

/// In order of precedence if several happen at the same time.
enum Category : std::size_t { compute, communication, copy, unknown, input, host, idle };
using CategoryTimes = std::array<Nanoseconds, 7>;

Category category_of(TaskKind kind) {
  // A copy between devices of one host uses a copy engine, and is exposed like other copies.
  if (kind == TaskKind::copy_peer) return copy;
  switch (class_of(kind)) {
    case TaskClass::compute:
      return compute;
    case TaskClass::communication:
      return communication;
    case TaskClass::copy:
      return copy;
    case TaskClass::input:
      return input;
    case TaskClass::host:
    case TaskClass::launch:
    case TaskClass::sync:
      return host;
    case TaskClass::unknown:
      return unknown;
    case TaskClass::none:
      return idle;
  }
  return idle;
}

/// A change in the number of running tasks of a part.
struct Change {
  Nanoseconds time;
  Category category;
  int by;
};

/// Computes how long each part is the first that is running, on the lanes of one rank.
CategoryTimes measure(std::vector<Change>& changes, StepWindow window) {
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  CategoryTimes times{};
  std::array<int, 7> running{};
  running[idle] = 1;
  Nanoseconds since = window.from;
  const auto pass = [&](Nanoseconds until) {
    const auto first =
        std::find_if(running.begin(), running.end(), [](int count) { return count > 0; });
    times[static_cast<std::size_t>(first - running.begin())] += until - since;
    since = until;
  };
  for (const Change& change : changes) {
    pass(change.time);
    running[change.category] += change.by;
  }
  pass(window.to);
  return times;
}

/// Scales the parts to add up to exactly `total`: each is rounded down, and the greatest takes the
/// remainder.
CategoryTimes in_proportion(const CategoryTimes& times, Nanoseconds total) {
  const Nanoseconds sum = std::accumulate(times.begin(), times.end(), 0ns);
  if (sum <= 0ns) return {0ns, 0ns, 0ns, 0ns, 0ns, 0ns, total};
  CategoryTimes result{};
  Nanoseconds left = total;
  for (std::size_t i = 0; i < times.size(); ++i) {
    result[i] = Nanoseconds(
        static_cast<std::int64_t>(Wide{times[i].count()} * total.count() / sum.count()));
    left -= result[i];
  }
  result[static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin())] +=
      left;
  return result;
}

std::vector<Change> changes_of_rank(const Graph& graph, const Timeline& timeline, std::int32_t rank,
                                    StepWindow window) {
  std::vector<Change> changes;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(LaneId{i});
    // Background work of a worker or a disk is not part of the step; waiting for it is. A worker's
    // lane may contain host work of the training process if they share cores; only that counts.
    if (lane.rank != rank || lane.kind == LaneKind::storage) continue;
    const bool of_worker = lane.kind == LaneKind::worker;
    for (TaskId task = graph.first(LaneId{i}); task != kNoTask; task = graph.next(task)) {
      const Category category = category_of(graph.task(task).kind);
      if (of_worker && category != host) continue;
      const Nanoseconds from = std::max(timeline.start[index(task)], window.from);
      const Nanoseconds to = std::min(timeline.finish[index(task)], window.to);
      if (category == idle || from >= to) continue;
      changes.push_back({from, category, 1});
      changes.push_back({to, category, -1});
    }
  }
  return changes;
}

/// Parts of steps that differ by more are no step's parts on average. Chosen.
constexpr double kUneven = .5;

/// The time of the steps whose parts are shown: all, or the one or two whose median is the step
/// time if others differ much, as those of other kinds do.
std::vector<StepWindow> shown_windows(const StepWindow& window) {
  const StepTimes& times = window.times;
  const std::size_t steps = times.counted.size();
  if (steps < 2 || times.spread <= kUneven) return {window};
  std::vector<std::size_t> order(steps);
  std::iota(order.begin(), order.end(), 0);
  const auto from_median = [&](std::size_t step) {
    return abs(times.counted[step] - times.step_time);
  };
  std::ranges::stable_sort(order, {}, from_median);
  const auto begin_of = [&](std::size_t step) {
    const auto first = times.each.begin() + static_cast<std::ptrdiff_t>(times.first);
    const auto before = static_cast<std::ptrdiff_t>(step) * times.period;
    return std::accumulate(first, first + before, window.from);
  };
  std::vector<StepWindow> windows;
  for (std::size_t i = 0; i < (steps % 2 == 1 ? 1U : 2U); ++i) {
    StepWindow& one = windows.emplace_back(window);
    one.from = begin_of(order[i]);
    one.to = std::clamp(begin_of(order[i] + 1), one.from, std::max(one.from, window.to));
  }
  return windows;
}

/// The parts of a typical step, over all ranks of the graph; as if only `category` ran, if given.
CategoryTimes step_categories(const Graph& graph, const Timeline& timeline,
                              std::optional<Category> only = {}) {
  const StepWindow window = step_window(graph, timeline);
  std::set<std::int32_t> ranks;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(LaneId{i});
    if (lane.kind != LaneKind::origin && graph.first(LaneId{i}) != kNoTask) ranks.insert(lane.rank);
  }
  CategoryTimes sum{};
  for (const StepWindow& shown : shown_windows(window)) {
    for (const std::int32_t rank : ranks) {
      std::vector<Change> changes = changes_of_rank(graph, timeline, rank, shown);
      if (only)
        std::erase_if(changes, [&](const Change& change) { return change.category != *only; });
      const CategoryTimes times = measure(changes, shown);
      for (std::size_t i = 0; i < times.size(); ++i) sum[i] += times[i];
    }
  }
  return in_proportion(sum, window.times.step_time);
}

}  // namespace

Breakdown breakdown(const Graph& graph, const Timeline& timeline) {
  const CategoryTimes step = step_categories(graph, timeline);
  return {step[compute], step[communication], step[copy],   step[input],
          step[host],    step[idle],          step[unknown]};
}

Nanoseconds communication_time(const Graph& graph, const Timeline& timeline) {
  return step_categories(graph, timeline, communication)[communication];
}

}  // namespace foretrace
