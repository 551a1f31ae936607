#include "ask/predict/explain.h"

#include <algorithm>
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

Nanoseconds waited(const Graph& graph, const Timeline& timeline, TaskId task) {
  return std::max(0ns, timeline.start[index(task)] - free_since(graph, timeline, task));
}

/// The dependency behind the reason of a start. Returns nullopt if the reason is the previous task
/// on the lane.
std::optional<Dependency> dependency_of(const Graph& graph, const Timeline& timeline, TaskId task) {
  const Reason& reason = timeline.reasons[index(task)];
  std::optional<Dependency> found;
  if (reason.before == kNoTask) return found;
  graph.each_wait(task, [&](const Dependency& wait) {
    if (!found && wait.before == reason.before && wait.why == reason.why && wait.lag == reason.lag)
      found = wait;
  });
  return found;
}

/// The properties shared by tasks of the path that appear in one line.
struct Kin {
  NameId name{};
  LaneId lane = kNoLane;
  NameId before{};
  LaneId before_lane = kNoLane;
  Why why{};
  std::uint8_t provenance = 0;
  bool first = false;  ///< The task waited for nothing.
  auto key() const { return std::tuple(name, lane, before, before_lane, why, provenance, first); }
  bool operator<(const Kin& other) const { return key() < other.key(); }
};

struct Sum {
  Nanoseconds start{0}, duration{0}, waited{0}, lag{0};
  std::int64_t count = 0;
};

constexpr std::uint8_t kInLine = 0xff;

/// Maps all numbered step markers of the profiler to one name.
NameId without_number(const Graph& graph, NameId name) {
  if (!graph.names()[name].starts_with(kProfilerStep) || graph.steps().empty()) return name;
  const NameId first = graph.names().find(graph.steps().front().name);
  return first == NameId{} ? name : first;
}

Kin kin_of(const Graph& graph, const Timeline& timeline, TaskId task) {
  const Reason& reason = timeline.reasons[index(task)];
  Kin kin;
  kin.name = without_number(graph, graph.task(task).name);
  kin.lane = graph.lane_of(task);
  kin.first = reason.before == kNoTask;
  if (kin.first) return kin;
  const std::optional<Dependency> wait = dependency_of(graph, timeline, task);
  kin.provenance = wait ? static_cast<std::uint8_t>(wait->provenance) : kInLine;
  kin.before_lane = graph.lane_of(reason.before);
  if (!wait && kin.before_lane == kin.lane) return kin;
  kin.before = without_number(graph, graph.task(reason.before).name);
  kin.why = reason.why;
  return kin;
}

std::string reason_text(const Graph& graph, const Kin& kin, const Sum& sum) {
  if (kin.first) return "waits for nothing";
  if (kin.provenance == kInLine && kin.before_lane == kin.lane) return "next on its lane";
  std::string text = "waits for " + shortened(graph.names()[kin.before], kLongestName);
  if (kin.before_lane != kin.lane) text += " on " + graph.lane(kin.before_lane).name;
  text += " (" + std::string(to_string(kin.why, graph.names()));
  if (kin.provenance != kInLine)
    text += ", " + std::string(to_string(static_cast<Provenance>(kin.provenance)));
  if (sum.lag > 0ns) text += ", " + to_text(sum.lag / sum.count) + " later";
  return text + ")";
}

/// The entries with the most work and those with the most waiting, at most `most` of each, sorted
/// by start.
std::vector<std::pair<Kin, Sum>> greatest(std::vector<std::pair<Kin, Sum>> lines,
                                          std::size_t most) {
  std::vector<char> kept(lines.size(), 0);
  for (const auto part : {&Sum::duration, &Sum::waited}) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].second.*part > 0ns) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return lines[a].second.*part > lines[b].second.*part;
    });
    for (std::size_t i = 0; i < std::min(most, order.size()); ++i) kept[order[i]] = 1;
  }
  std::vector<std::pair<Kin, Sum>> all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (kept[i] != 0) all.push_back(lines[i]);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second.start < b.second.start; });
  return all;
}

}  // namespace

std::vector<Explained> explain(const Graph& graph, const Timeline& timeline, std::size_t most) {
  std::map<Kin, Sum> sums;
  for (const TaskId task : critical_path(graph, timeline)) {
    if (graph.removed(task) || graph.task(task).kind == TaskKind::marker) continue;
    Sum& sum = sums[kin_of(graph, timeline, task)];
    if (sum.count++ == 0) sum.start = timeline.start[index(task)];
    sum.duration += timeline.finish[index(task)] - timeline.start[index(task)];
    sum.waited += waited(graph, timeline, task);
    sum.lag += timeline.reasons[index(task)].lag;
  }
  const std::vector<std::pair<Kin, Sum>> lines = greatest({sums.begin(), sums.end()}, most);
  std::vector<Explained> all;
  for (const auto& [kin, sum] : lines) {
    std::string task = shortened(graph.names()[kin.name], kLongestName);
    if (sum.count > 1) task += " (" + std::to_string(sum.count) + " times)";
    all.push_back({std::move(task), graph.lane(kin.lane).name, reason_text(graph, kin, sum),
                   sum.start, sum.duration, sum.waited});
  }
  return all;
}

}  // namespace foretrace
