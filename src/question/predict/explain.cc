#include "question/predict/explain.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/wording.h"
#include "trace/step_name.h"

namespace foretrace {
namespace {

constexpr std::size_t kLongestName = 60;

/// Time at which the task could have started if only its lane mattered.
Nanoseconds free_since(const Graph& graph, const Timeline& timeline, TaskId task) {
  const TaskId before = graph.previous(task);
  if (before == kNoTask) return 0ns;
  return released_at(graph.task(task), timeline.start[index(before)],
                     timeline.finish[index(before)]);
}

/// A thread that another one hands work to had nothing to do before: that is no wait.
Nanoseconds waited(const Graph& graph, const Timeline& timeline, TaskId task) {
  if (timeline.reasons[index(task)].why == Rule::thread_handover) return 0ns;
  return std::max(0ns, timeline.start[index(task)] - free_since(graph, timeline, task));
}

/// The dependency behind the reason of a start. Returns nullopt if the reason is the previous task
/// on the lane.
std::optional<Dependency> dependency_of(const Graph& graph, const Timeline& timeline, TaskId task) {
  const StartReason& reason = timeline.reasons[index(task)];
  std::optional<Dependency> found;
  if (reason.before == kNoTask) return found;
  graph.each_wait(task, [&](const Dependency& wait) {
    if (!found && wait.before == reason.before && wait.why == reason.why && wait.lag == reason.lag)
      found = wait;
  });
  return found;
}

/// The properties that tasks of the path must share to appear in one line.
struct PathKey {
  NameId name{};
  LaneId lane = kNoLane;
  NameId before{};
  LaneId before_lane = kNoLane;
  WaitReason why{};
  std::uint8_t provenance = 0;
  bool first = false;  ///< The task waited for nothing.
  auto fields() const {
    return std::tuple(name, lane, before, before_lane, why, provenance, first);
  }
  bool operator<(const PathKey& other) const { return fields() < other.fields(); }
};

struct PathTotals {
  Nanoseconds start{0}, duration{0}, waited{0}, lag{0};
  std::int64_t count = 0;
};

constexpr std::uint8_t kLaneOrder = 0xff;

/// Maps all numbered step markers of the profiler to one name.
NameId without_number(const Graph& graph, NameId name) {
  if (!graph.names()[name].starts_with(kProfilerStep) || graph.steps().empty()) return name;
  const NameId first = graph.names().find(graph.steps().front().name);
  return first == NameId{} ? name : first;
}

PathKey path_key_of(const Graph& graph, const Timeline& timeline, TaskId task) {
  const StartReason& reason = timeline.reasons[index(task)];
  PathKey key;
  key.name = without_number(graph, graph.task(task).name);
  key.lane = graph.lane_of(task);
  key.first = reason.before == kNoTask;
  if (key.first) return key;
  const std::optional<Dependency> wait = dependency_of(graph, timeline, task);
  key.provenance = wait ? static_cast<std::uint8_t>(wait->provenance) : kLaneOrder;
  key.before_lane = graph.lane_of(reason.before);
  if (!wait && key.before_lane == key.lane) return key;
  key.before = without_number(graph, graph.task(reason.before).name);
  key.why = reason.why;
  return key;
}

std::string reason_text(const Graph& graph, const PathKey& key, const PathTotals& totals) {
  if (key.first) return "waits for nothing";
  if (key.provenance == kLaneOrder && key.before_lane == key.lane) return "next on its lane";
  std::string lane, provenance, lag;
  if (key.before_lane != key.lane) lane = " on " + graph.lane(key.before_lane).name;
  if (key.provenance != kLaneOrder)
    provenance = fmt::format(", {}", to_string(static_cast<Provenance>(key.provenance)));
  if (totals.lag > 0ns) lag = fmt::format(", {} later", to_text(totals.lag / totals.count));
  return fmt::format("waits for {}{} ({}{}{})", shortened(graph.names()[key.before], kLongestName),
                     lane, to_string(key.why, graph.names()), provenance, lag);
}

/// The entries with the most work and those with the most waiting, at most `most` of each, sorted
/// by start.
std::vector<std::pair<PathKey, PathTotals>> longest_lines(
    std::vector<std::pair<PathKey, PathTotals>> lines, std::size_t most) {
  std::vector<char> kept(lines.size(), 0);
  for (const auto part : {&PathTotals::duration, &PathTotals::waited}) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].second.*part > 0ns) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return lines[a].second.*part > lines[b].second.*part;
    });
    for (std::size_t i = 0; i < std::min(most, order.size()); ++i) kept[order[i]] = 1;
  }
  std::vector<std::pair<PathKey, PathTotals>> all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (kept[i] != 0) all.push_back(lines[i]);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second.start < b.second.start; });
  return all;
}

}  // namespace

std::vector<Explained> explain(const Graph& graph, const Timeline& timeline, std::size_t most) {
  std::map<PathKey, PathTotals> totals_by_key;
  for (const TaskId task : critical_path(graph, timeline)) {
    if (graph.removed(task) || graph.task(task).kind == TaskKind::marker) continue;
    PathTotals& totals = totals_by_key[path_key_of(graph, timeline, task)];
    if (totals.count++ == 0) totals.start = timeline.start[index(task)];
    totals.duration += timeline.finish[index(task)] - timeline.start[index(task)];
    totals.waited += waited(graph, timeline, task);
    totals.lag += timeline.reasons[index(task)].lag;
  }
  const std::vector<std::pair<PathKey, PathTotals>> lines =
      longest_lines({totals_by_key.begin(), totals_by_key.end()}, most);
  std::vector<Explained> all;
  for (const auto& [key, totals] : lines) {
    std::string task = shortened(graph.names()[key.name], kLongestName);
    if (totals.count > 1) task += fmt::format(" ({} times)", totals.count);
    all.push_back({std::move(task), graph.lane(key.lane).name, reason_text(graph, key, totals),
                   totals.start, totals.duration, totals.waited});
  }
  return all;
}

}  // namespace foretrace
