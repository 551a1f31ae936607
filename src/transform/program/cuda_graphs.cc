// A captured region costs one launch, t = launch_time + kernels * kernel_time, and no host work in
// between; inside it kernels follow each other at the graph's own gap:
//
//     cpu     |LhMhN....|                  cpu     |G.....|
//     stream  |.A.B.CCC.|   ->             stream  |.ABCCC|
//
// Ignored: the time to capture, copies of inputs into the graph's own buffers, and the memory of
// its private pool.

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/regions.h"
#include "transform/edit/registered.h"
#include "transform/program/capture.h"

namespace foretrace {
namespace {

class CudaGraphs final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The device tasks that may be captured");
    fields.choice("per", per_, {"step", "phase"},
                  "One graph for as much of a step as possible, or one for each phase on a thread");
    fields.time("launch_time", launch_time_, "Host time to launch a graph (recalled: 5us to 10us)",
                Nanoseconds(0));
    fields.time("kernel_time", kernel_time_,
                "Additional host time for each task of the graph (recalled: 200ns before CUDA "
                "12.6, near nothing since)",
                Nanoseconds(0));
    fields.time(
        "gap", gap_,
        "Gap between tasks that follow each other in a graph, where the recorded one is "
        "longer (in graphs recorded on an H100 and an RTX 3060 0.1us; on an A100 up to 0.5us)",
        Nanoseconds(0));
    fields.integer("least", least_, "Smaller regions are left as they are", 2, 1'000'000'000);
  }

  Applicability applies(const Graph& graph) const override {
    std::string obstacle = capture_obstacle(graph);
    if (obstacle.empty()) return {};
    return {.share = 0, .why_not = std::move(obstacle)};
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> tasks = where_.select_some(graph);
    std::vector<char> captured(graph.task_count(), 0);
    for (const TaskId task : tasks) captured[index(task)] = 1;
    const Launches launches(graph);
    Cuts cuts;
    std::vector<Region> regions = find_regions(graph, launches, captured, per_ == "phase", cuts);
    if (regions.empty()) {
      throw Error(
          fmt::format("no launch calls belong to the tasks of \"where\" ({}): without a host side "
                      "there is nothing to save",
                      where_.to_text()));
    }
    std::erase_if(regions, [&](const Region& region) {
      return region.launches.size() < static_cast<std::size_t>(least_);
    });
    Tally tally;
    replace(graph, launches, regions, tally);
    return effect_of(regions.size(), tally, cuts);
  }

 private:
  struct Tally {
    std::size_t calls = 0, kernels = 0;
    Nanoseconds host{0};
  };

  void replace(Graph& graph, const Launches& launches, const std::vector<Region>& regions,
               Tally& tally) const {
    std::vector<TaskId> graph_launch(graph.task_count(), kNoTask);
    std::vector<TaskId> removed;
    const NameId name = graph.names().intern("cudaGraphLaunch");
    for (const Region& region : regions) {
      const TaskId first = region.launches.front();
      std::size_t kernels = 0;
      for (const TaskId call : region.launches) {
        graph_launch[index(call)] = first;
        kernels += launches.count(call);
        tally.host += graph.task(call).duration;
        if (call != first) removed.push_back(call);
      }
      for (const TaskId task : region.host) {
        tally.host += graph.task(task).duration;
        removed.push_back(task);
      }
      graph.task(first).name = name;
      graph.task(first).duration =
          launch_time_ + scaled(kernel_time_, static_cast<double>(kernels));
      tally.calls += region.launches.size();
      tally.kernels += kernels;
      tally.host -= graph.task(first).duration;
    }
    launch_together(graph, launches, graph_launch);
    remove_calls(graph, removed);
  }

  /// Every captured task waits for the launch of its graph instead of its own.
  void launch_together(Graph& graph, const Launches& launches,
                       const std::vector<TaskId>& graph_launch) const {
    std::vector<Dependency> together;
    const auto own_launch = [&](const Dependency& wait) {
      if (launches.launch_of(wait.after) != wait.before) return false;
      const TaskId launch = graph_launch[index(wait.before)];
      return launch != kNoTask && launch != wait.before;
    };
    for (std::size_t i = 0; i < graph_launch.size(); ++i) {
      const auto task = static_cast<TaskId>(i);
      const TaskId call = launches.launch_of(task);
      if (call == kNoTask || graph_launch[index(call)] == kNoTask) continue;
      const TaskId launch = graph_launch[index(call)];
      // The first task of a graph keeps its gap, because it follows a task outside the graph.
      if (launch != call) graph.task(task).gap = std::min(graph.task(task).gap, gap_);
      if (launch == call) continue;
      together.push_back({.before = launch,
                          .after = task,
                          .provenance = Provenance::assumed,
                          .why = Rule::launch});
    }
    graph.remove_dependencies(own_launch);
    for (const Dependency& wait : together) graph.add(wait);
  }

  static Effect effect_of(std::size_t regions, const Tally& tally, const Cuts& cuts) {
    Effect effect;
    effect.changed = tally.calls;
    effect.host_saved = tally.host;
    effect.summary =
        fmt::format("{} became {}, {} less host work", counted(tally.calls, "launch call"),
                    counted(regions, "graph launch"), to_text(tally.host));
    const auto note = [&](std::string_view why, std::size_t count) {
      note_count(effect, Severity::info, why, count);
    };
    note("captured regions cut where the host waits for the device", cuts.waits);
    note("captured regions cut at copies from or to host memory", cuts.copies);
    note("captured regions cut where the host compiles or loads code", cuts.loads);
    note("captured regions cut at launches outside \"where\"", cuts.others);
    effect.assumptions.push_back(
        "captured work is the same in every step: shapes and control flow do not change");
    effect.assumptions.push_back(
        "memory use stays as recorded; a captured graph keeps its own pool");
    return effect;
  }

  Selector where_{"device"};
  std::string per_ = "step";
  Nanoseconds launch_time_ = 8us;
  Nanoseconds kernel_time_ = 200ns;
  Nanoseconds gap_ = 100ns;
  std::int64_t least_ = 2;
};

}  // namespace

TransformEntry cuda_graphs_entry() {
  return {.make = create<CudaGraphs>,
          .assumes =
              "One graph launch replaces the launch calls of each captured region and the host "
              "work between them, and gaps between its kernels shrink to that of a graph. A region "
              "ends where the host waits for the device, loads input, compiles or loads code, or "
              "copies from or to host memory. Kernels take as long as before, so a step that the "
              "device bounds does not "
              "get faster. Capturing, copies into static buffers and the graph's memory pool are "
              "not modelled.",
          .advice = {.goal = Goal::time, .tries = {"cuda_graphs"}, .applies_to = {"launches"}}};
}

}  // namespace foretrace
