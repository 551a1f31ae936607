#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

// Limits, so that a size of one byte given by mistake does not fill the memory.
constexpr std::int64_t kMaxSlices = 10'000;
constexpr std::int64_t kMaxSlicesInAll = 20'000'000;

/// Cuts tasks into slices. Where one split task waits for another, each slice waits for its match:
///
///     a  |AAAA....|   2 slices  ->  a  |AAaa..|
///     b  |....BBBB|                 b  |..BBbb|
class Split final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to cut");
    fields.integer("slices", slices_, "Number of slices", 1, kMaxSlices);
    fields.bytes("size", size_, "Instead: into slices of at most this many bytes; 0B: by number");
    fields.time("overhead", overhead_, "Additional time of each slice but the first",
                Nanoseconds(0));
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> tasks = where_.select_some(graph);
    check_size(graph, tasks);
    std::vector<Group> slices_of(graph.task_count());
    Effect effect;
    for (const TaskId task : tasks) {
      slices_of[index(task)] = cut(graph, task);
      if (slices_of[index(task)].size() > 1) effect.changed += slices_of[index(task)].size();
    }
    connect(graph, slices_of);
    for (Allocation& allocation : graph.allocations()) {
      if (allocation.made_by != kNoTask) allocation.made_by = first(slices_of, allocation.made_by);
    }
    effect.summary = fmt::format("{} cut into {}", counted(tasks.size(), "task"),
                                 counted(effect.changed, "slice"));
    return effect;
  }

 private:
  std::int64_t count(const Task& task) const {
    if (size_.count == 0) return slices_;
    return std::max<std::int64_t>(
        1, task.bytes.count / size_.count + (task.bytes.count % size_.count != 0 ? 1 : 0));
  }

  void check_size(const Graph& graph, const std::vector<TaskId>& tasks) const {
    std::int64_t all = 0;
    for (const TaskId task : tasks) {
      const std::int64_t slices = count(graph.task(task));
      all += slices;
      if (slices <= kMaxSlices && all <= kMaxSlicesInAll) continue;
      throw Error(
          fmt::format("size: must be large enough for at most {} slices a task and {} in all",
                      kMaxSlices, kMaxSlicesInAll));
    }
  }

  /// The last slice is the task itself, so that tasks waiting for its end still do.
  Group cut(Graph& graph, TaskId id) const {
    const Task whole = graph.task(id);
    const std::int64_t n = count(whole);
    const auto part = [n](std::int64_t total, std::int64_t i) {
      return total / n + (i < total % n ? 1 : 0);
    };
    Group slices;
    for (std::int64_t i = 0; i < n; ++i) {
      Task slice = whole;
      slice.duration = Nanoseconds(part(whole.duration.count(), i));
      if (i > 0) slice.duration += overhead_;
      if (i > 0) slice.gap = Nanoseconds(0), slice.tail = {};
      slice.bytes = Bytes{part(whole.bytes.count, i)};
      slice.flops = whole.flops / static_cast<double>(n);
      if (i + 1 < n) {
        slices.push_back(graph.insert_before(id, slice));
      } else {
        graph.task(id) = slice;
        slices.push_back(id);
      }
    }
    return slices;
  }

  static TaskId first(const std::vector<Group>& slices_of, TaskId task) {
    const bool cut = index(task) < slices_of.size() && !slices_of[index(task)].empty();
    return cut ? slices_of[index(task)].front() : task;
  }

  /// Slices wait for each other by dependencies, because the lane may lose its order later.
  static void connect(Graph& graph, const std::vector<Group>& slices_of) {
    std::vector<Dependency> added;
    const auto touched = [&](const Dependency& d) {
      const bool starts_later = slices_of[index(d.after)].size() > 1;
      const bool counts_from_start =
          d.anchor == Anchor::start && slices_of[index(d.before)].size() > 1;
      return starts_later || counts_from_start;
    };
    graph.each_dependency([&](const Dependency& dependency) {
      if (touched(dependency)) redirect(dependency, slices_of, added);
    });
    graph.remove_dependencies(touched);
    for (const Group& slices : slices_of) {
      for (std::size_t i = 1; i < slices.size(); ++i) {
        added.push_back({.before = slices[i - 1],
                         .after = slices[i],
                         .provenance = Provenance::assumed,
                         .why = wait_reason_named(graph.names(), "slice")});
      }
    }
    for (const Dependency& dependency : added) graph.add(dependency);
  }

  static void redirect(const Dependency& dependency, const std::vector<Group>& slices_of,
                       std::vector<Dependency>& added) {
    const Group& before = slices_of[index(dependency.before)];
    const Group& after = slices_of[index(dependency.after)];
    Dependency moved = dependency;
    if (before.size() <= 1 || after.size() <= 1 || dependency.anchor == Anchor::start) {
      if (dependency.anchor == Anchor::start && before.size() > 1) moved.before = before.front();
      if (after.size() > 1) moved.after = after.front();
      added.push_back(moved);
      return;
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::size_t needed = ((i + 1) * before.size() + after.size() - 1) / after.size();
      moved.before = before[needed - 1];
      moved.after = after[i];
      added.push_back(moved);
    }
  }

  Selector where_;
  std::int64_t slices_ = 2;
  Bytes size_{};
  Nanoseconds overhead_{0};
};

}  // namespace

TransformEntry split_entry() {
  return {.make = create<Split>,
          .assumes =
              "Work and bytes divide evenly, and a slice needs only the matching part of what it "
              "waits for. Tasks that are not split wait for the last slice. Launch calls are not "
              "multiplied: \"overhead\" stands for them.",
          .advice = {.why_not = "a manual edit: you choose what to split"}};
}

}  // namespace foretrace
