#include "transform/edit/regions.h"

#include <set>
#include <utility>

#include "base/contains.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kNoSpan = 0xffffffff;

enum class Boundary { none, wait, copy, load, other };

/// Whether a call, or a range around calls, compiles code for the device or loads it.
bool loads_code(std::string_view name) {
  return contains_any(name,
                      {"ModuleLoad", "LibraryLoad", "cuLink", "nvrtc", "Nvrtc", "NVRTC", "hiprtc"});
}

/// Tasks that directly follow each other on a thread, none of which ends a region.
struct HostSpan {
  LaneId lane = kNoLane;
  std::vector<TaskId> tasks;
  std::vector<TaskId> launches;
  std::uint32_t leader = kNoSpan;
};

class RegionFinder {
 public:
  RegionFinder(const Graph& graph, const Launches& launches, const std::vector<char>& captured,
               bool phases)
      : graph_(graph),
        boundary_(graph.task_count(), Boundary::none),
        launches_(graph.task_count(), 0),
        span_of_(graph.task_count(), kNoSpan),
        phases_(phases) {
    for (std::size_t i = 0; i < graph.task_count(); ++i) {
      const auto task = static_cast<TaskId>(i);
      const TaskId call = launches.launch_of(task);
      if (call == kNoTask || graph.removed(task)) continue;
      launches_[index(call)] = 1;
      const TaskKind kind = graph.task(task).kind;
      if (crosses_host_link(kind)) {
        boundary_[index(call)] = Boundary::copy;
      } else if (captured[i] == 0 && boundary_[index(call)] == Boundary::none) {
        boundary_[index(call)] = Boundary::other;
      }
    }
    // A host task that waits for the device ends a region, whatever its kind. A launch does not: it
    // only waits for a place in the launch queue.
    graph.each_dependency([&](const Dependency& wait) {
      if (!runs_on_device(graph.task(wait.before).kind)) return;
      const TaskKind kind = graph.task(wait.after).kind;
      if (runs_on_host(kind) && kind != TaskKind::launch)
        boundary_[index(wait.after)] = Boundary::wait;
    });
    mark_loads();
  }

  std::vector<Region> run(Cuts& cuts) {
    for (std::size_t i = 0; i < graph_.lane_count(); ++i) {
      const auto lane = static_cast<LaneId>(i);
      if (graph_.lane(lane).kind == LaneKind::host_thread || graph_.lane(lane).device < 0) {
        cut_lane(lane, cuts);
      }
    }
    if (!phases_) join_threads();
    return regions();
  }

 private:
  void mark_loads() {
    std::vector<char> loads(graph_.names().size(), 0);
    for (std::uint32_t i = 0; i < loads.size(); ++i)
      loads[i] = loads_code(graph_.names()[NameId{i}]);
    for (std::uint32_t i = 0; i < graph_.task_count(); ++i) {
      const Task& task = graph_.task(TaskId{i});
      if (task.kind == TaskKind::host && loads[static_cast<std::uint32_t>(task.name)] != 0)
        boundary_[i] = Boundary::load;
    }
  }

  void cut_lane(LaneId lane, Cuts& cuts) {
    bool open = false;
    Phase phase = Phase::none;
    std::int32_t step = -1;
    for (TaskId id = graph_.first(lane); id != kNoTask; id = graph_.next(id)) {
      const Task& task = graph_.task(id);
      const Boundary boundary = boundary_of(id);
      const bool other_phase =
          phases_ && task.phase != Phase::none && phase != Phase::none && task.phase != phase;
      if (boundary != Boundary::none) {
        if (open && !spans_.back().launches.empty() && task.step == step) count(cuts, boundary);
        open = false;
        phase = Phase::none;
        continue;
      }
      if (!open || task.step != step || other_phase) {
        spans_.emplace_back().lane = lane;
        open = true;
        step = task.step;
        phase = Phase::none;
      }
      if (task.phase != Phase::none) phase = task.phase;
      spans_.back().tasks.push_back(id);
      if (launches_[index(id)] != 0) spans_.back().launches.push_back(id);
      span_of_[index(id)] = static_cast<std::uint32_t>(spans_.size() - 1);
    }
  }

  Boundary boundary_of(TaskId id) const {
    const TaskKind kind = graph_.task(id).kind;
    if (kind == TaskKind::sync || kind == TaskKind::input) return Boundary::wait;
    return boundary_[index(id)];
  }

  static void count(Cuts& cuts, Boundary boundary) {
    if (boundary == Boundary::wait) ++cuts.waits;
    if (boundary == Boundary::copy) ++cuts.copies;
    if (boundary == Boundary::load) ++cuts.loads;
    if (boundary == Boundary::other) ++cuts.others;
  }

  void join_threads() {
    std::set<std::pair<std::uint32_t, std::uint32_t>> links;
    graph_.each_dependency([&](const Dependency& wait) {
      const std::uint32_t before = span_of_[index(wait.before)];
      const std::uint32_t after = span_of_[index(wait.after)];
      if (before == kNoSpan || after == kNoSpan || before == after) return;
      links.emplace(before, after);
    });
    for (const auto& [outer, inner] : links) {
      if (links.count({inner, outer}) == 0) continue;
      // The thread that hands over work before it waits for the other one leads the region.
      if (!hands_over_first(outer, inner) || spans_[outer].launches.empty()) continue;
      if (spans_[outer].leader == kNoSpan) spans_[inner].leader = outer;
    }
  }

  /// Whether `outer` hands work to `inner` before it waits for `inner`.
  bool hands_over_first(std::uint32_t outer, std::uint32_t inner) const {
    for (const TaskId task : spans_[outer].tasks) {
      bool gives = false;
      bool takes = false;
      graph_.each_dependent(
          task, [&](const Dependency& wait) { gives |= span_of_[index(wait.after)] == inner; });
      graph_.each_wait(
          task, [&](const Dependency& wait) { takes |= span_of_[index(wait.before)] == inner; });
      if (gives != takes) return gives;
    }
    return false;
  }

  std::vector<Region> regions() const {
    std::vector<Region> found(spans_.size());
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const HostSpan& span = spans_[i];
      if (span.leader != kNoSpan) {
        Region& region = found[span.leader];
        append(region.launches, span.launches);
        for (const TaskId task : span.tasks) {
          if (launches_[index(task)] == 0) region.host.push_back(task);
        }
      } else if (!span.launches.empty()) {
        add_leading_thread(found[i], span);
      }
    }
    std::erase_if(found, [](const Region& region) { return region.launches.empty(); });
    return found;
  }

  void add_leading_thread(Region& region, const HostSpan& span) const {
    // The launches of the leading thread come first, even if those of another were appended before.
    region.launches.insert(region.launches.begin(), span.launches.begin(), span.launches.end());
    std::size_t launched = 0;
    for (const TaskId task : span.tasks) {
      if (launches_[index(task)] != 0) {
        ++launched;
      } else if (launched > 0 && launched < span.launches.size()) {
        region.host.push_back(task);
      }
    }
  }

  static void append(std::vector<TaskId>& to, const std::vector<TaskId>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  const Graph& graph_;
  std::vector<Boundary> boundary_;
  std::vector<char> launches_;
  std::vector<std::uint32_t> span_of_;
  std::vector<HostSpan> spans_;
  bool phases_;
};

}  // namespace

std::vector<Region> find_regions(const Graph& graph, const Launches& launches,
                                 const std::vector<char>& captured, bool phases, Cuts& cuts) {
  return RegionFinder(graph, launches, captured, phases).run(cuts);
}

}  // namespace foretrace
