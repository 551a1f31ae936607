#include "question/predict/timeline_json.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "document/page/packed_numbers.h"

namespace foretrace {
namespace {

constexpr std::int64_t kBins = 4096;
constexpr std::size_t kMaxPathSegments = 12'000;
constexpr std::size_t kMaxStepNames = 2'000;
constexpr std::size_t kLongestTaskName = 200;

/// Assigns numbers to names in the order of their first use.
class PageNames {
 public:
  std::uint64_t number(std::string_view name) {
    const auto [found, is_new] =
        numbers_.try_emplace(std::string(name.substr(0, kLongestTaskName)), names_.size());
    if (is_new) names_.push_back(found->first);
    return found->second;
  }
  const nlohmann::json& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  nlohmann::json names_ = nlohmann::json::array();
};

std::string group_of(const Graph& graph, const Lane& lane, bool several_ranks) {
  const std::string rank = several_ranks ? fmt::format("rank {}, ", lane.rank) : "";
  if (lane.device < 0) return rank + "host";
  const auto device = static_cast<std::size_t>(lane.device);
  const bool has_name =
      device < graph.device_names().size() && !graph.device_names()[device].empty();
  return fmt::format("{}device {}{}", rank, lane.device,
                     has_name ? fmt::format(" ({})", graph.device_names()[device]) : "");
}

/// Assigns numbers to lanes; the same lane has the same number in all runs.
class PageLanes {
 public:
  std::size_t number(const Graph& graph, LaneId id, bool several_ranks) {
    const Lane& lane = graph.lane(id);
    const std::string group = group_of(graph, lane, several_ranks);
    const auto [found, is_new] =
        numbers_.try_emplace(std::tuple(index(id), lane.name, group), lanes_.size());
    if (is_new) lanes_.push_back({lane.name, group});
    return found->second;
  }
  const nlohmann::json& lanes() const { return lanes_; }

 private:
  std::map<std::tuple<std::uint32_t, std::string, std::string>, std::size_t> numbers_;
  nlohmann::json lanes_ = nlohmann::json::array();
};

/// Returns a byte for each bin, which says how busy the lane is; see timeline_json.h.
std::string occupancy(const DrawnRun& run, const DrawnLane& lane, Nanoseconds bin) {
  std::vector<std::array<std::int64_t, kTaskClasses>> busy(kBins);
  for (const TaskId id : lane.all) {
    const auto kind = static_cast<std::size_t>(drawn_class(run.graph.task(id).kind));
    Nanoseconds from = std::max(run.timeline.start[index(id)], 0ns);
    const Nanoseconds to = run.timeline.finish[index(id)];
    while (from < to) {
      const std::int64_t at = std::min(from / bin, kBins - 1);
      const Nanoseconds end = at == kBins - 1 ? to : std::min(to, (at + 1) * bin);
      busy[static_cast<std::size_t>(at)][kind] += (end - from).count();
      from = end;
    }
  }
  std::string bytes;
  for (const auto& classes : busy) {
    std::int64_t sum = 0;
    for (const std::int64_t time : classes) sum += time;
    const auto most = std::max_element(classes.begin(), classes.end()) - classes.begin();
    // Even very little work is visible.
    const std::int64_t level =
        sum == 0 ? 0 : std::clamp<std::int64_t>((31 * sum) / bin.count(), 1, 31);
    bytes += static_cast<char>(most << 5 | level);
  }
  return bytes;
}

struct PathSegment {
  LaneId lane = kNoLane;
  Nanoseconds from{0}, to{0};
};

/// Joins tasks of the path that are close together on one lane, until there are few enough pieces.
std::vector<PathSegment> path_segments(const DrawnRun& run, const std::vector<TaskId>& path) {
  std::vector<PathSegment> segments;
  for (const TaskId id : path) {
    if (run.graph.removed(id) || run.graph.task(id).kind == TaskKind::marker) continue;
    segments.push_back(
        {run.graph.lane_of(id), run.timeline.start[index(id)], run.timeline.finish[index(id)]});
  }
  for (Nanoseconds gap = 1ns;; gap *= 4) {
    std::vector<PathSegment> joined;
    for (const PathSegment& next : segments) {
      const bool goes_on =
          !joined.empty() && joined.back().lane == next.lane && next.from - joined.back().to <= gap;
      // Very many short pieces on several lanes look like one.
      const bool is_tiny = !joined.empty() && gap > 1us && next.to - joined.back().from <= gap;
      if (goes_on || is_tiny) {
        joined.back().to = std::max(joined.back().to, next.to);
      } else {
        joined.push_back(next);
      }
    }
    segments = std::move(joined);
    if (segments.size() <= kMaxPathSegments) return segments;
  }
}

/// Writes the JSON of one run.
class RunWriter {
 public:
  RunWriter(const TitledRun& titled, PageNames& names, PageLanes& lanes)
      : run_(titled.run),
        drawing_(titled.drawing),
        names_(names),
        lanes_(lanes),
        number_(run_.graph.task_count(), 0) {
    std::uint32_t number = 0;
    for (const DrawnLane& lane : drawing_.lanes) {
      several_ranks_ |= run_.graph.lane(lane.id).rank != run_.graph.lane(drawing_.lanes[0].id).rank;
      for (const TaskId id : lane.shown) number_[index(id)] = ++number;
    }
  }

  nlohmann::json write(const std::string& title, Nanoseconds bin) {
    std::string bins;
    nlohmann::json lanes = nlohmann::json::array();
    for (const DrawnLane& lane : drawing_.lanes) {
      lanes.push_back({lane_number(lane.id), lane.tasks, lane.shown.size(), lane.busy.count()});
      bins += occupancy(run_, lane, bin);
      add_tasks(lane);
    }
    return {{"title", title},
            {"length", run_.timeline.length.count()},
            {"tasks", drawing_.tasks},
            {"tasks_shown", drawing_.tasks_shown},
            {"steps", steps()},
            {"step", drawing_.step < drawing_.steps.size() ? nlohmann::json(drawing_.step)
                                                           : nlohmann::json()},
            {"lanes", std::move(lanes)},
            {"bins", base64_of(bins)},
            {"path", path()},
            {"columns", columns()},
            {"reasons", std::move(reasons_)}};
  }

 private:
  std::size_t lane_number(LaneId id) { return lanes_.number(run_.graph, id, several_ranks_); }

  nlohmann::json steps() const {
    nlohmann::json all = nlohmann::json::array();
    for (const StepExtent& step : drawing_.steps) {
      if (all.size() == kMaxStepNames) break;
      all.push_back({step.name, step.from.count(), step.to.count()});
    }
    return all;
  }

  nlohmann::json path() {
    PackedNumbers lane, from, length;
    Nanoseconds last{0};
    for (const PathSegment& segment : path_segments(run_, drawing_.path)) {
      lane.add(lane_number(segment.lane));
      from.add_signed((segment.from - last).count());
      length.add(static_cast<std::uint64_t>(std::max(segment.to - segment.from, 0ns).count()));
      last = segment.from;
    }
    return {{"lane", base64_of(lane.bytes())},
            {"from", base64_of(from.bytes())},
            {"length", base64_of(length.bytes())}};
  }

  void add_tasks(const DrawnLane& lane) {
    Nanoseconds last{0};
    std::int32_t step = -1;
    for (const TaskId id : lane.shown) {
      const Task& task = run_.graph.task(id);
      const Nanoseconds start = run_.timeline.start[index(id)];
      start_.add_signed((start - last).count());
      duration_.add_signed((run_.timeline.finish[index(id)] - start).count());
      name_.add(names_.number(run_.graph.names()[task.name]));
      module_.add(names_.number(run_.graph.names()[task.module]));
      kind_.add(static_cast<std::uint64_t>(task.kind) | static_cast<std::uint64_t>(task.phase)
                                                            << 4U);
      step_.add_signed(task.step - step);
      waited_.add(static_cast<std::uint64_t>(lane_idle_before(run_, id).count()));
      add_reason(id);
      last = start, step = task.step;
    }
  }

  void add_reason(TaskId id) {
    const StartReason reason =
        run_.timeline.reasons.empty() ? StartReason{} : run_.timeline.reasons[index(id)];
    reason_.add(reason_number(id, reason));
    const std::uint32_t before = reason.before == kNoTask ? 0 : number_[index(reason.before)];
    if (before == 0) return before_.add(0);
    before_.add_signed(std::int64_t{number_[index(id)]} - std::int64_t{before});
  }

  std::uint64_t reason_number(TaskId id, const StartReason& reason) {
    const bool none = reason.before == kNoTask;
    std::optional<Provenance> provenance;
    if (!none) {
      run_.graph.each_wait(id, [&](const Dependency& wait) {
        if (!provenance && wait.before == reason.before && wait.why == reason.why &&
            wait.lag == reason.lag)
          provenance = wait.provenance;
      });
    }
    const LaneId lane = none ? kNoLane : run_.graph.lane_of(reason.before);
    const auto key = std::tuple(none ? NameId{} : run_.graph.task(reason.before).name, lane,
                                reason.why, provenance ? static_cast<int>(*provenance) : -1, none);
    const auto [found, is_new] = numbers_of_reasons_.try_emplace(key, reasons_.size());
    if (is_new && none) reasons_.push_back(nlohmann::json());
    if (is_new && !none) {
      reasons_.push_back({names_.number(run_.graph.name(reason.before)), lane_number(lane),
                          names_.number(to_string(reason.why, run_.graph.names())),
                          provenance ? to_string(*provenance) : std::string_view()});
    }
    return found->second;
  }

  nlohmann::json columns() const {
    return {{"start", base64_of(start_.bytes())},   {"duration", base64_of(duration_.bytes())},
            {"name", base64_of(name_.bytes())},     {"module", base64_of(module_.bytes())},
            {"kind", base64_of(kind_.bytes())},     {"step", base64_of(step_.bytes())},
            {"waited", base64_of(waited_.bytes())}, {"reason", base64_of(reason_.bytes())},
            {"before", base64_of(before_.bytes())}};
  }

  const DrawnRun& run_;
  const Drawing& drawing_;
  PageNames& names_;
  PageLanes& lanes_;
  std::vector<std::uint32_t> number_;  ///< By task: 1 + place in the columns; 0: not shown.
  bool several_ranks_ = false;
  PackedNumbers start_, duration_, name_, module_, kind_, step_, waited_, reason_, before_;
  std::map<std::tuple<NameId, LaneId, WaitReason, int, bool>, std::size_t> numbers_of_reasons_;
  nlohmann::json reasons_ = nlohmann::json::array();
};

nlohmann::json json_list(const auto& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& one : all) list.push_back(one);
  return list;
}

}  // namespace

nlohmann::json timeline_json(const std::vector<TitledRun>& runs) {
  PageNames names;
  PageLanes lanes;
  names.number("");
  Nanoseconds longest = 1ns;
  for (const TitledRun& titled : runs) longest = std::max(longest, titled.run.timeline.length);
  const Nanoseconds bin = (longest - 1ns) / kBins + 1ns;
  nlohmann::json written = nlohmann::json::array();
  for (const TitledRun& titled : runs)
    written.push_back(RunWriter(titled, names, lanes).write(titled.title, bin));
  nlohmann::json classes = nlohmann::json::array(), of_kinds = nlohmann::json::array();
  for (std::size_t i = 0; i < kTaskClasses; ++i)
    classes.push_back(to_string(static_cast<TaskClass>(i)));
  for (const std::string_view kind : task_kind_names())
    of_kinds.push_back(static_cast<int>(drawn_class(*task_kind_named(kind))));
  return {{"bins", kBins},
          {"bin_ns", bin.count()},
          {"names", names.names()},
          {"lanes", lanes.lanes()},
          {"kinds", json_list(task_kind_names())},
          {"phases", json_list(phase_names())},
          {"classes", std::move(classes)},
          {"class_of_kind", std::move(of_kinds)},
          {"runs", std::move(written)}};
}

}  // namespace foretrace
