// Chooses blocks by layer (vDNN, MICRO 2016). The input of a layer leaves while the layer computes,
// and both streams wait for each other at its end; in the backward pass each layer fetches the
// input of the nearest layer before it that has not been fetched, looking no further than the next
// convolution:
//
//     T_forward  = sum of max(forward of n,  input of n / bandwidth)
//     T_backward = sum of max(backward of m, its fetched input / bandwidth)
//
// A block that several layers read belongs to the last of them. If tasks know their layer,
// consecutive tasks of the same layer form it; otherwise each kernel is a layer of its own. A block
// that no layer fetched ahead comes when it is needed.

#include <algorithm>
#include <map>
#include <string>

#include "base/contains.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "transform/memory/swap.h"

namespace foretrace {
namespace {

/// Tasks of one layer in a row.
struct LayerRun {
  TaskId first = kNoTask, last = kNoTask;
  bool convolution = false;
  std::vector<std::size_t> inputs{};  ///< Indices of the swaps whose block leaves during it.
  bool fetched = false;
  std::int64_t mirrors = -1;  ///< For a backward run, the forward run of its layer.
};

bool is_convolution(std::string_view text) {
  return contains_any(lower_case(text), {"conv", "fprop", "dgrad", "wgrad", "winograd", "cudnn"});
}

class LayerPlanner {
 public:
  LayerPlanner(const Graph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline), run_of_(graph.task_count(), kNone) {
    for (std::size_t i = 0; i < graph.lane_count(); ++i) list_runs(LaneId(i));
    order_by_time();
  }

  SwapPlan plan(bool convolutions_only, Bytes min_bytes, const std::vector<std::uint32_t>& blocks) {
    const AccessLists accesses(graph_);
    for (const std::uint32_t number : blocks) {
      if (graph_.allocations()[number].bytes < min_bytes || stays(number)) continue;
      add_swap(number, timed_accesses(graph_, timeline_, accesses, number), convolutions_only);
    }
    fetch_ahead();
    for (Swap& swap : plan_.swaps) fetch_when_needed(swap);
    plan_.in_access_order = false;
    return std::move(plan_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  Nanoseconds start(TaskId task) const { return timeline_.start[index(task)]; }

  void list_runs(LaneId lane) {
    const auto same_layer = [&](TaskId a, TaskId b) {
      const Task &one = graph_.task(a), &other = graph_.task(b);
      return one.layer >= 0 && one.layer == other.layer && one.step == other.step &&
             one.phase == other.phase;
    };
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      const Task& work = graph_.task(task);
      if (work.kind != TaskKind::kernel) continue;
      if (work.phase != Phase::forward && work.phase != Phase::backward) continue;
      const TaskId front = graph_.previous(task);
      const bool goes_on =
          front != kNoTask && run_of_[index(front)] != kNone && same_layer(front, task);
      if (!goes_on) runs_.push_back({.first = task});
      LayerRun& run = runs_.back();
      run.last = task;
      run.convolution = run.convolution || convolves(work);
      run_of_[index(task)] = static_cast<std::uint32_t>(runs_.size() - 1);
    }
  }

  bool convolves(const Task& task) {
    const std::string_view name = graph_.names()[task.name];
    const auto [at, added] = convolves_.try_emplace(task.name, false);
    if (added)
      at->second = is_convolution(name) && classify_kernel(name).bound == Boundness::compute;
    return at->second || is_convolution(graph_.names()[task.module]);
  }

  void order_by_time() {
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      const bool forward = graph_.task(runs_[i].first).phase == Phase::forward;
      (forward ? forward_ : backward_).push_back(i);
    }
    const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(start(runs_[a].first), a) < std::pair(start(runs_[b].first), b);
    };
    std::sort(forward_.begin(), forward_.end(), earlier);
    std::sort(backward_.begin(), backward_.end(), earlier);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> by_layer;
    for (std::size_t n = 0; n < forward_.size(); ++n) {
      const Task& task = graph_.task(runs_[forward_[n]].first);
      if (task.layer >= 0) by_layer[{task.step, task.layer}] = static_cast<std::int64_t>(n);
    }
    for (const std::uint32_t i : backward_) {
      const Task& task = graph_.task(runs_[i].first);
      const auto found = by_layer.find({task.step, task.layer});
      if (task.layer >= 0 && found != by_layer.end()) runs_[i].mirrors = found->second;
    }
    position_.resize(runs_.size(), 0);
    for (std::size_t n = 0; n < forward_.size(); ++n) position_[forward_[n]] = n;
  }

  /// Whether a block cannot be the input of a layer: it exists for longer than a pass, or is a
  /// workspace.
  bool stays(std::uint32_t number) const {
    const MemoryUse use = graph_.allocations()[number].use;
    return use == MemoryUse::parameter || use == MemoryUse::gradient ||
           use == MemoryUse::optimizer_state || use == MemoryUse::workspace;
  }

  void add_swap(std::uint32_t number, const std::vector<TimedAccess>& accesses,
                bool convolutions_only) {
    TaskId last = kNoTask, back = kNoTask;
    bool made_before = false;
    for (const TimedAccess& access : accesses) {
      const Phase phase = graph_.task(access.task).phase;
      if (phase == Phase::backward && last != kNoTask) {
        back = access.task;
        break;
      }
      if (phase != Phase::forward || run_of_[index(access.task)] == kNone) continue;
      if (last == kNoTask || access.finish >= timeline_.finish[index(last)]) {
        made_before = made_before || !access.writes ||
                      (last != kNoTask && run_of_[index(last)] != run_of_[index(access.task)]);
        last = access.task;
      }
    }
    if (back == kNoTask || run_of_[index(back)] == kNone) return;
    if (graph_.task(back).step != graph_.task(last).step) return;
    ++plan_.considered;
    const std::uint32_t run = run_of_[index(last)];
    LayerRun& layer = runs_[run];
    if (convolutions_only && !layer.convolution) return;
    // A block that the layer itself writes cannot leave before it is made.
    const TaskId leaves = made_before ? layer.first : last;
    const TaskId next = graph_.next(layer.last);
    if (next == kNoTask || start(next) <= start(leaves) || start(next) >= start(back)) return;
    Swap swap{.allocation = number, .out_after = leaves, .freed_at = next, .back = back};
    swap.out_anchor = made_before ? Anchor::start : Anchor::finish;
    swap.out_start = start(leaves);
    layer.inputs.push_back(plan_.swaps.size());
    LayerRun& user = runs_[run_of_[index(back)]];
    user.mirrors = std::max(user.mirrors, static_cast<std::int64_t>(position_[run]));
    plan_.swaps.push_back(swap);
  }

  void fetch_ahead() {
    for (const std::uint32_t m : backward_) {
      for (std::int64_t n = runs_[m].mirrors - 1; n >= 0; --n) {
        LayerRun& layer = runs_[forward_[static_cast<std::size_t>(n)]];
        if (graph_.task(layer.first).step != graph_.task(runs_[m].first).step) break;
        if (!layer.inputs.empty() && !layer.fetched) {
          layer.fetched = true;
          for (const std::size_t i : layer.inputs) fetch_during(runs_[m], plan_.swaps[i]);
          break;
        }
        if (layer.convolution) break;
      }
    }
  }

  void fetch_during(const LayerRun& run, Swap& swap) const {
    if (start(run.first) >= start(swap.back) || start(run.first) < start(swap.freed_at)) return;
    swap.trigger = run.first;
    swap.trigger_anchor = Anchor::start;
    swap.in_start = start(run.first);
    const TaskId next = graph_.next(run.last);
    if (next != kNoTask && start(next) > start(run.first)) swap.synced = next;
  }

  void fetch_when_needed(Swap& swap) const {
    if (swap.trigger != kNoTask) return;
    swap.hidden = false;
    swap.in_start = start(swap.freed_at);
    const TaskId front = graph_.previous(swap.back);
    if (front == kNoTask || start(front) >= start(swap.back)) return;
    if (start(front) < start(swap.freed_at)) return;
    swap.trigger = front;
    swap.in_start = start(front);
  }

  const Graph& graph_;
  const Timeline& timeline_;
  std::vector<std::uint32_t> run_of_;
  std::vector<LayerRun> runs_;
  std::vector<std::uint32_t> forward_, backward_;  ///< Runs in order of time.
  std::vector<std::size_t> position_;              ///< Position of each run in forward_.
  std::map<NameId, bool> convolves_;
  SwapPlan plan_;
};

}  // namespace

SwapPlan plan_by_layer(const Graph& graph, const Timeline& timeline, bool convolutions_only,
                       Bytes min_bytes, const AllocationSelector& where) {
  const std::vector<std::uint32_t> blocks = where.select_some(graph);
  LayerPlanner planner(graph, timeline);
  return planner.plan(convolutions_only, min_bytes, blocks);
}

}  // namespace foretrace
