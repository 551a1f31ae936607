#include "transform/parallel/gradients.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Least forward work of a micro-batch, as a share of the forward work of its step. Chosen; DDP
/// jobs rarely accumulate more than 16.
constexpr double kMinMicroBatch = 0.03;

class GradientFinder {
 public:
  GradientFinder(const Graph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline) {}

  Gradients find(Bytes given) {
    find_passes();
    Gradients found;
    for (auto& [step, pass] : passes_) found.passes.push_back(std::move(pass));
    if (found.passes.empty())
      throw Error(
          "no backward pass: the trace does not say which work belongs to it (record with "
          "record_function ranges or with shapes and modules)");
    if (given == Bytes{}) found.are_recorded = add_recorded(found.passes);
    if (!found.are_recorded) {
      if (given == Bytes{}) found.estimate = graph_.gradient_estimate();
      if (given == Bytes{}) given = found.estimate.bytes;
      if (given == Bytes{})
        throw Error(
            "gradient_bytes: must be given (the parameters times the bytes of each gradient), "
            "because this trace does not show " +
            std::string(has_gradients()
                            ? "which work writes them; `foretrace memory` counts them"
                            : "gradients; record with record_shapes=True or profile_memory=True "
                              "to see them"));
      for (BackwardPass& pass : found.passes) spread(given, pass);
    }
    std::sort(found.passes.begin(), found.passes.end(),
              [&](const BackwardPass& a, const BackwardPass& b) {
                return finish(a.last) < finish(b.last);
              });
    return found;
  }

 private:
  Nanoseconds start(TaskId task) const { return timeline_.start[index(task)]; }
  Nanoseconds finish(TaskId task) const { return timeline_.finish[index(task)]; }

  void find_passes() {
    each_device_task([&](TaskId id, const Task& task) {
      if (task.phase == Phase::forward || task.phase == Phase::backward)
        work_[task.step].push_back(id);
      if (task.phase != Phase::backward) return;
      BackwardPass& pass = passes_[task.step];
      pass.step = task.step;
      if (pass.last == kNoTask || finish(id) > finish(pass.last)) pass.last = id;
    });
    for (auto& [step, pass] : passes_) {
      pass.first = *std::min_element(
          work_[step].begin(), work_[step].end(),
          [&](TaskId a, TaskId b) { return std::pair(start(a), a) < std::pair(start(b), b); });
    }
    // On the stream of the pass, the work behind it may read gradients; on other streams only
    // updates may.
    for (auto& [step, pass] : passes_) {
      if (const TaskId next = next_work(pass.last); next != kNoTask) pass.readers.push_back(next);
    }
    std::map<std::pair<std::int32_t, LaneId>, char> seen;
    each_device_task([&](TaskId id, const Task& task) {
      const auto pass = passes_.find(task.step);
      if (task.phase != Phase::update || pass == passes_.end()) return;
      const LaneId lane = graph_.lane_of(id);
      if (lane == graph_.lane_of(pass->second.last) || start(id) < finish(pass->second.last) ||
          !seen.try_emplace({task.step, lane}).second)
        return;
      pass->second.readers.push_back(id);
    });
  }

  template <class Visit>
  void each_device_task(const Visit& visit) const {
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) {
      for (TaskId id = graph_.first(LaneId{i}); id != kNoTask; id = graph_.next(id)) {
        const Task& task = graph_.task(id);
        if (runs_on_device(task.kind) && !is_between_peers(task.kind)) visit(id, task);
      }
    }
  }

  TaskId next_work(TaskId task) const {
    do task = graph_.next(task);
    while (task != kNoTask &&
           (!runs_on_device(graph_.task(task).kind) || is_between_peers(graph_.task(task).kind)));
    return task;
  }

  bool has_gradients() const {
    return std::ranges::any_of(graph_.allocations(), [](const Allocation& block) {
      return block.use == MemoryUse::gradient;
    });
  }

  /// Adds the gradients that the trace shows. Returns whether every pass has some.
  bool add_recorded(std::vector<BackwardPass>& passes) const {
    std::map<std::pair<std::int32_t, std::uint32_t>, TaskId> writers;  // By step and block.
    const auto written = [&](std::uint32_t block, TaskId by) {
      if (by == kNoTask || graph_.removed(by)) return;
      const Task& task = graph_.task(by);
      if (task.phase != Phase::backward || !runs_on_device(task.kind)) return;
      TaskId& last = writers.try_emplace({task.step, block}, by).first->second;
      if (finish(by) > finish(last)) last = by;
    };
    const std::vector<Allocation>& blocks = graph_.allocations();
    for (const Access& access : graph_.accesses()) {
      const Allocation& block = blocks[access.allocation];
      if (access.writes && block.use == MemoryUse::gradient && block.bytes > Bytes{})
        written(access.allocation, access.task);
    }
    std::map<std::int32_t, BackwardPass*> of_step;
    for (BackwardPass& pass : passes) of_step[pass.step] = &pass;
    for (const auto& [key, task] : writers) {
      const Allocation& block = blocks[key.second];
      of_step.at(key.first)->gradients.push_back(
          {block.requested > Bytes{} ? block.requested : block.bytes, task});
    }
    bool all = true;
    for (BackwardPass& pass : passes) {
      all = all && !pass.gradients.empty();
      std::stable_sort(
          pass.gradients.begin(), pass.gradients.end(), [&](const Gradient& a, const Gradient& b) {
            return std::pair(finish(a.ready), a.ready) < std::pair(finish(b.ready), b.ready);
          });
    }
    return all;
  }

  /// Returns the backward work of a step, in order. If there are several micro-batches, returns
  /// that of the last, in which gradients become complete.
  std::vector<TaskId> last_backward(std::int32_t step) {
    std::vector<TaskId>& work = work_[step];
    std::sort(work.begin(), work.end(),
              [&](TaskId a, TaskId b) { return std::pair(start(a), a) < std::pair(start(b), b); });
    Nanoseconds forward{0}, since{0};
    for (const TaskId id : work)
      forward += graph_.task(id).phase == Phase::forward ? graph_.task(id).duration : 0ns;
    std::vector<TaskId> backward;
    for (const TaskId id : work) {
      const Task& task = graph_.task(id);
      if (task.phase == Phase::forward) {
        since += task.duration;
        continue;
      }
      // Less forward work is no micro-batch, but a metric or a piece that the trace puts there.
      if (ratio(since, forward) > kMinMicroBatch) backward.clear();
      since = 0ns;
      backward.push_back(id);
    }
    return backward;
  }

  void spread(Bytes bytes, BackwardPass& pass) {
    std::vector<TaskId> work = last_backward(pass.step);
    std::sort(work.begin(), work.end(), [&](TaskId a, TaskId b) {
      return std::pair(finish(a), a) < std::pair(finish(b), b);
    });
    Nanoseconds total{0}, done{0};
    for (const TaskId id : work) total += graph_.task(id).duration;
    pass.gradients.clear();
    Bytes given{};
    for (const TaskId id : work) {
      done += graph_.task(id).duration;
      const double part = total > 0ns ? ratio(done, total) : 1;
      const Bytes until = id == work.back() ? bytes : scaled(bytes, part);
      if (until > given) pass.gradients.push_back({until - given, id});
      given = std::max(given, until);
    }
  }

  const Graph& graph_;
  const Timeline& timeline_;
  std::map<std::int32_t, BackwardPass> passes_;       ///< By step.
  std::map<std::int32_t, std::vector<TaskId>> work_;  ///< Both passes, by step.
};

}  // namespace

Gradients find_gradients(const Graph& graph, const Timeline& timeline, Bytes given) {
  return GradientFinder(graph, timeline).find(given);
}

void assume_gradients(const Gradients& found, std::vector<std::string>& assumptions) {
  if (const GradientEstimate& estimate = found.estimate; estimate.bytes > Bytes{}) {
    const std::string range =
        estimate.lower == estimate.upper
            ? ""
            : fmt::format(", between {} and {}", to_text(estimate.lower), to_text(estimate.upper));
    assumptions.push_back(
        fmt::format("gradients take {}{}, estimated from {}; gradient_bytes "
                    "states their size",
                    to_text(estimate.bytes), range, estimate.source));
  }
  if (!found.are_recorded)
    assumptions.emplace_back(
        "gradients become ready evenly over the backward pass, as the trace does not show which "
        "kernel makes which");
}

namespace {

bool runs_kernels(const Graph& graph, LaneId lane) {
  for (TaskId id = graph.first(lane); id != kNoTask; id = graph.next(id))
    if (graph.task(id).kind == TaskKind::kernel) return true;
  return false;
}

}  // namespace

void refuse_communication(const Graph& graph) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    const Task& task = graph.task(id);
    if (graph.removed(id) || task.kind != TaskKind::collective) continue;
    // An earlier step may have put the collective between kernels of the passes, as tensor_parallel
    // does.
    if (task.record == Task{}.record && runs_kernels(graph, graph.lane_of(id))) continue;
    throw Error(
        fmt::format("the recorded job has communicated already ({}); give the trace of a job on "
                    "one GPU, or remove its communication first: remove:where.kind=collective",
                    graph.name(id)));
  }
}

Bytes total_bytes(const BackwardPass& pass) {
  Bytes sum{};
  for (const Gradient& gradient : pass.gradients) sum += gradient.bytes;
  return sum;
}

}  // namespace foretrace
