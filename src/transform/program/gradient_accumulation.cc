// Runs several smaller batches for one update: each goes forward and backward on its own, gradients
// add up, and only the last one communicates and updates. For two micro-batches:
//
//     stream  |iiFFFFBBBBccUU|   ->   stream  |iFFBBiFFBBccUU|
//
// A micro-batch has 1/n of the samples: kernels take their minimum time plus 1/n of the rest
// (batch_work.h), and every kernel is launched n times. Activations shrink to 1/n, as those of one
// micro-batch are freed before the next begins; gradients stay from the first on.
//
// Ignored: adding to a gradient instead of writing it, and normalizations over a smaller batch.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <utility>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/batch_work.h"

namespace foretrace {
namespace {

class GradientAccumulation final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("micro_batches", micro_batches_,
                   "Micro-batches that go forward and backward for one update; 1: as recorded", 1,
                   1024);
  }

  Effect apply(Graph& graph, const Context&) const override {
    const Timeline before = simulate(graph, {.memory = false});
    const Bytes peak = peak_memory(graph, before);
    Passes passes = find_passes(graph);
    if (passes.tasks == 0)
      throw Error("micro_batches: no task of this trace is of the forward or backward pass");
    Effect effect;
    const double share = 1 / static_cast<double>(micro_batches_);
    if (micro_batches_ > 1) {
      effect.changed = passes.tasks;
      shrink(graph, share);
      Copier copier(graph, before, passes, static_cast<std::size_t>(micro_batches_));
      copier.copy();
    }
    const std::string how =
        micro_batches_ == 1
            ? "as recorded"
            : fmt::format("for each of {0} micro-batches, with 1/{0} of the samples each",
                          micro_batches_);
    effect.summary = fmt::format("{} of the passes {}", counted(passes.tasks, "task"), how);
    effect.assumptions = {
        "only the last micro-batch communicates, and the update is as before",
        "kernels of the passes take their shortest time plus time in proportion to the samples"};
    if (!graph.allocations().empty()) {
      effect.figures = {{"peak_before", peak}, {"peak_after", peak_memory(graph)}};
    }
    return effect;
  }

  JobChange job_change() const override { return {.parts = micro_batches_}; }

 private:
  /// The tasks of the passes of each step, by lane, in lane order.
  struct Passes {
    std::map<std::int32_t, std::map<LaneId, std::vector<TaskId>>> steps;
    std::vector<char> in_pass;
    std::size_t tasks = 0;
  };

  static bool belongs(const Task& task) {
    if (is_between_peers(task.kind)) return false;
    return task.kind == TaskKind::input || task.phase == Phase::input ||
           task.phase == Phase::forward || task.phase == Phase::backward;
  }

  /// Finds the tasks of the passes: on each lane of a step, all from the first to the last that
  /// belongs to a pass, except those that update or communicate.
  Passes find_passes(const Graph& graph) const {
    Passes passes;
    passes.in_pass.resize(graph.task_count(), 0);
    bool has_backward = false;
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      const LaneId lane{static_cast<std::uint32_t>(i)};
      std::map<std::int32_t, std::vector<TaskId>> waiting;
      for (TaskId id = graph.first(lane); id != kNoTask; id = graph.next(id)) {
        const Task& task = graph.task(id);
        if (task.phase == Phase::update || is_between_peers(task.kind)) continue;
        std::vector<TaskId>& between = waiting[task.step];
        if (!belongs(task)) {
          between.push_back(id);
          continue;
        }
        has_backward = has_backward || task.phase == Phase::backward;
        std::vector<TaskId>& line = passes.steps[task.step][lane];
        if (!line.empty()) line.insert(line.end(), between.begin(), between.end());
        between.clear();
        line.push_back(id);
      }
    }
    if (!has_backward) return {};
    for (const auto& [step, lanes] : passes.steps) {
      for (const auto& [lane, line] : lanes) {
        passes.tasks += line.size();
        for (const TaskId id : line) passes.in_pass[index(id)] = 1;
      }
    }
    constexpr std::size_t kMaxTasks = 20'000'000;
    if (graph.task_count() > kMaxTasks / static_cast<std::size_t>(micro_batches_))
      throw Error("micro_batches: would make more than 20 million tasks");
    return passes;
  }

  static void shrink(Graph& graph, double share) {
    BatchWork work(graph);
    std::vector<TaskWork> wanted(graph.task_count());
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) wanted[i] = work.grown(TaskId{i}, share);
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t i = 0; i < graph.allocations().size(); ++i) {
      if (work.grows(i)) blocks.push_back(i);
    }
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) wanted[i].set(graph.task(TaskId{i}));
    for (const std::uint32_t number : blocks)
      replace_block(graph, number, resized(graph.allocations()[number], share, "micro_batches"));
  }

  /// The recorded tasks become the last micro-batch; the others come before them.
  class Copier {
   public:
    Copier(Graph& graph, const Timeline& before, const Passes& passes, std::size_t count)
        : graph_(graph), passes_(passes) {
      copies_.resize(count - 1);
      for (auto& of_batch : copies_) of_batch.resize(graph.task_count(), kNoTask);
      order_steps(before);
      std::vector<std::size_t> numbers(graph.task_count(), 0);
      for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
        if (in_pass(TaskId{i})) numbers[i] = number_of(TaskId{i});
      }
      latest_ = greatest_awaited(graph, std::move(numbers));
    }

    void copy() {
      for (const std::int32_t step : order_) {
        for (const auto& [lane, line] : passes_.steps.at(step)) copy_line(line);
      }
      copy_dependencies();
      copy_blocks();
    }

   private:
    /// Orders the steps by the begin of their passes, and numbers them from 1.
    void order_steps(const Timeline& before) {
      std::multimap<Nanoseconds, std::int32_t> by_begin;
      for (const auto& [step, lanes] : passes_.steps) {
        Nanoseconds begin = Nanoseconds::max();
        for (const auto& [lane, line] : lanes)
          begin = std::min(begin, before.start[index(line.front())]);
        by_begin.emplace(begin, step);
      }
      for (const auto& [begin, step] : by_begin) {
        order_.push_back(step);
        numbers_.emplace(step, order_.size());
      }
    }

    /// The number of the step of a task.
    std::size_t number_of(TaskId id) const { return numbers_.at(graph_.task(id).step); }

    /// Returns the task to insert copies before: the first on the lane that belongs to the passes
    /// of the step of `first` or waits for them. Start times do not show which these are, because a
    /// device that lags behind the host runs kernels of earlier steps after the step has begun.
    TaskId place_of(TaskId first) const {
      const std::size_t number = number_of(first);
      for (TaskId id = graph_.previous(first); id != kNoTask; id = graph_.previous(id)) {
        if (index(id) >= latest_.size() || latest_[index(id)] < number) break;
        first = id;
      }
      return first;
    }

    void copy_line(const std::vector<TaskId>& line) {
      const TaskId first = line.front();
      const TaskId place = place_of(first);
      for (auto& of_batch : copies_) {
        for (const TaskId id : line) {
          Task task = graph_.task(id);
          of_batch[index(id)] = graph_.insert_before(place, task);
        }
      }
      // Only the first micro-batch keeps the gap before the passes; the others follow it directly.
      graph_.task(first).gap = 0ns;
      for (std::size_t k = 1; k < copies_.size(); ++k) {
        Task& copy = graph_.task(copies_[k][index(first)]);
        copy.gap = 0ns, copy.tail = {};
      }
    }

    /// Repeats dependencies between tasks of the passes in each micro-batch. Where the passes wait
    /// for something before the step, the first micro-batch waits for it. Launches remain measured,
    /// because steps are marked by these.
    void copy_dependencies() {
      std::vector<Dependency> added;
      graph_.each_dependency([&](const Dependency& wait) {
        if (index(wait.after) >= passes_.in_pass.size() ||
            index(wait.before) >= passes_.in_pass.size() || !in_pass(wait.after)) {
          return;
        }
        const bool inside = in_pass(wait.before) && same_step(wait.before, wait.after);
        if (!inside && latest_[index(wait.before)] >= number_of(wait.after)) return;
        for (const auto& of_batch : copies_) {
          Dependency copy = wait;
          if (wait.why != Rule::launch) copy.provenance = Provenance::assumed;
          if (inside) copy.before = of_batch[index(wait.before)];
          copy.after = of_batch[index(wait.after)];
          added.push_back(copy);
          if (!inside) break;
        }
      });
      for (const Dependency& wait : added) graph_.add(wait);
    }

    bool in_pass(TaskId id) const { return passes_.in_pass[index(id)] != 0; }

    bool inside(TaskId id) const {
      return id != kNoTask && index(id) < passes_.in_pass.size() && in_pass(id);
    }

    /// Copies the blocks that a pass makes and frees for each micro-batch. A gradient exists from
    /// the first micro-batch on.
    void copy_blocks() {
      const std::size_t count = graph_.allocations().size();
      std::vector<std::vector<std::uint32_t>> copied(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        const Allocation block = graph_.allocations()[i];
        if (!inside(block.made_by)) continue;
        if (block.use == MemoryUse::gradient) {
          graph_.allocations()[i].made_by = copies_.front()[index(block.made_by)];
          continue;
        }
        if (!inside(block.freed_by) || !same_step(block.made_by, block.freed_by)) continue;
        for (const auto& of_batch : copies_) {
          Allocation copy = block;
          copy.made_by = of_batch[index(block.made_by)];
          copy.freed_by = of_batch[index(block.freed_by)];
          copied[i].push_back(static_cast<std::uint32_t>(graph_.allocations().size()));
          graph_.allocations().push_back(copy);
        }
      }
      const std::size_t accesses = graph_.accesses().size();
      for (std::size_t i = 0; i < accesses; ++i) {
        const Access access = graph_.accesses()[i];
        if (!inside(access.task)) continue;
        for (std::size_t k = 0; k < copies_.size(); ++k) {
          Access copy = access;
          copy.task = copies_[k][index(access.task)];
          if (!copied[access.allocation].empty()) copy.allocation = copied[access.allocation][k];
          graph_.accesses().push_back(copy);
        }
      }
    }

    bool same_step(TaskId a, TaskId b) const { return graph_.task(a).step == graph_.task(b).step; }

    Graph& graph_;
    const Passes& passes_;
    std::vector<std::vector<TaskId>> copies_;      ///< Copies of each micro-batch but the last.
    std::vector<std::int32_t> order_;              ///< The steps in order.
    std::map<std::int32_t, std::size_t> numbers_;  ///< The number of each step.
    /// By task: the greatest number of a step whose passes it belongs to or waits for; 0 if none.
    std::vector<std::size_t> latest_;
  };

  std::int64_t micro_batches_ = 2;
};

}  // namespace

TransformEntry gradient_accumulation_entry() {
  return {
      .make = create<GradientAccumulation>,
      .assumes =
          "The batch is cut into micro-batches that load, go forward and go backward one after "
          "the other, each with its share of the samples: kernels take as long as the shortest "
          "kernel plus their share of the rest, and are all launched again. Collectives and the "
          "update happen once, after the last. Activations shrink with the samples; gradients "
          "stay from the first micro-batch on. The cost of adding to gradients instead of "
          "writing them is not modelled.",
      .advice = {
          .goal = Goal::memory, .tries = {"gradient_accumulation"}, .applies_to = {"batch"}}};
}

}  // namespace foretrace
