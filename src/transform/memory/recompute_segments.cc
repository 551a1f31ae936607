// Finds where forward passes begin and end, and cuts them into segments. Layers are those that the
// trace names. Without them, layers of a given number are the parts of a pass that repeat:
//
//     embed | norm gemm attn gemm add | norm gemm attn gemm add | norm gemm attn gemm add | logits
//
// cut where the fewest activations are read on the other side; otherwise each task that completes
// a block kept for the backward pass ends a layer.

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "transform/memory/recompute_plan.h"

namespace foretrace {
namespace {

/// The progress of one device through its passes.
struct Progress {
  std::int32_t pass = -1;
  std::int32_t unit = -1;
  std::int32_t layer = -1;
  bool in_forward = false;
  bool unit_done = false;
};

/// A part of a sequence, of `length` elements, that repeats over `covered` elements from `first`
/// on.
struct Repetition {
  std::size_t first = 0, length = 0, covered = 0;
};

/// Finds the repetition that covers most of `names`, which must be half of them or more and three
/// times the same; none is 0 long. Of several lengths, the shortest.
Repetition repetition_in(const std::vector<NameId>& names) {
  constexpr std::size_t kMaxTasks = 5000, kFewest = 3, kShortest = 3;
  Repetition best;
  std::size_t most = std::max(names.size() / 2, kFewest * kShortest) - 1;
  if (names.size() > kMaxTasks) return best;
  for (std::size_t length = kShortest; length * kFewest <= names.size(); ++length) {
    std::size_t run = 0;
    for (std::size_t i = 0; i + length < names.size(); ++i) {
      run = names[i] == names[i + length] ? run + 1 : 0;
      if (run + length <= most || run < (kFewest - 1) * length) continue;
      most = run + length;
      best = {.first = i + 1 - run, .length = length, .covered = most};
    }
  }
  return best;
}

class Cutter {
 public:
  Cutter(const MemoryView& view, const std::vector<Activation>& activations)
      : view_(view), activations_(activations), completes_(view.graph.task_count(), 0) {
    for (const Activation& activation : activations) {
      TaskId last = kNoTask;
      for (const Access& access : view.uses.of_block(activation.allocation)) {
        if (!access.writes || view.is_late(access.task)) continue;
        completes_[index(access.task)] |= 1;
        last = access.task;
      }
      if (last != kNoTask) completes_[index(last)] |= 2;
    }
    segments_.segment.assign(view.graph.task_count(), kNoSegment);
    segments_.unit.assign(view.graph.task_count(), kNoSegment);
  }

  ForwardSegments cut(std::int64_t length) {
    const std::vector<TaskId> tasks = users_of_memory();
    segments_.by_layer = std::any_of(tasks.begin(), tasks.end(), [&](TaskId task) {
      return is_forward(task) && view_.graph.task(task).layer >= 0;
    });
    pass_of_.assign(view_.graph.task_count(), kNoSegment);
    for (const TaskId task : tasks) place(task);
    if (length > 0 && !segments_.by_layer) take_repetitions(tasks);
    number_segments(tasks, length);
    segments_.passes = static_cast<std::int32_t>(units_of_pass_.size());
    return std::move(segments_);
  }

 private:
  std::vector<TaskId> users_of_memory() const {
    std::vector<TaskId> tasks;
    for (std::size_t i = 0; i < view_.graph.task_count(); ++i) {
      const auto task = static_cast<TaskId>(i);
      if (!view_.uses.of_task(task).empty()) tasks.push_back(task);
    }
    std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) { return view_.before(a, b); });
    return tasks;
  }

  bool is_forward(TaskId task) const {
    const Phase phase = view_.phase(task);
    return phase == Phase::forward || (phase == Phase::none && completes_[index(task)] != 0);
  }

  void place(TaskId task) {
    const Lane& lane = view_.graph.lane(view_.graph.lane_of(task));
    Progress& progress = progress_[{lane.rank, lane.device}];
    if (view_.is_late(task)) {
      progress.in_forward = false;
      return;
    }
    if (!is_forward(task)) return;
    if (!progress.in_forward) {
      progress = {.pass = static_cast<std::int32_t>(units_of_pass_.size()), .in_forward = true};
      units_of_pass_.push_back(0);
    }
    const std::int32_t layer = view_.graph.task(task).layer;
    const bool next =
        segments_.by_layer ? layer >= 0 && layer != progress.layer : progress.unit_done;
    if (progress.unit < 0 || next) ++progress.unit;
    if (layer >= 0) progress.layer = layer;
    progress.unit_done = (completes_[index(task)] & 2) != 0;
    units_of_pass_[static_cast<std::size_t>(progress.pass)] = progress.unit + 1;
    segments_.unit[index(task)] = progress.unit;
    pass_of_[index(task)] = progress.pass;
  }

  /// Makes the repeating parts of each pass its layers, where it has any.
  void take_repetitions(const std::vector<TaskId>& tasks) {
    std::vector<std::vector<TaskId>> passes(units_of_pass_.size());
    for (const TaskId task : tasks) {
      if (pass_of_[index(task)] >= 0 && runs_on_device(view_.graph.task(task).kind))
        passes[static_cast<std::size_t>(pass_of_[index(task)])].push_back(task);
    }
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      const std::vector<TaskId>& kernels = passes[pass];
      std::vector<NameId> names;
      for (const TaskId task : kernels) names.push_back(view_.graph.task(task).name);
      const Repetition found = repetition_in(names);
      if (found.length == 0) continue;
      const std::size_t first = best_cut(kernels, found);
      const std::size_t parts = (found.first + found.covered - first) / found.length;
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        const std::size_t unit = i < first ? 0 : 1 + std::min((i - first) / found.length, parts);
        segments_.unit[index(kernels[i])] = static_cast<std::int32_t>(unit);
        units_of_pass_[pass] = static_cast<std::int32_t>(unit + 1);
      }
      segments_.by_repetition = true;
    }
  }

  /// The place in the first of the repeating parts in front of which a cut leaves the fewest
  /// activations that are read behind it.
  std::size_t best_cut(const std::vector<TaskId>& kernels, const Repetition& found) const {
    std::map<TaskId, std::size_t> place;
    for (std::size_t i = 0; i < kernels.size(); ++i) place[kernels[i]] = i;
    std::vector<int> crossing(kernels.size() + 1, 0);
    for (const Activation& activation : activations_) {
      std::size_t first = kernels.size(), last = 0;
      for (const Access& access : view_.uses.of_block(activation.allocation)) {
        const auto at = place.find(access.task);
        if (at == place.end()) continue;
        first = std::min(first, at->second), last = std::max(last, at->second);
      }
      for (std::size_t i = first + 1; i <= last; ++i) ++crossing[i];
    }
    // The second part has another one in front of it, as the later ones do.
    const auto second = crossing.begin() + static_cast<std::ptrdiff_t>(found.first + found.length);
    const auto least = std::min_element(second, second + static_cast<std::ptrdiff_t>(found.length));
    return static_cast<std::size_t>(least - crossing.begin()) - found.length;
  }

  void number_segments(const std::vector<TaskId>& tasks, std::int64_t length) {
    std::vector<std::int32_t> first, lengths;
    for (std::size_t pass = 0; pass < units_of_pass_.size(); ++pass) {
      const std::int32_t units = units_of_pass_[pass];
      const auto root = static_cast<std::int64_t>(std::ceil(std::sqrt(units)));
      const auto wanted = static_cast<std::int32_t>(
          std::min<std::int64_t>(length > 0 ? length : root, std::max(units, 1)));
      first.push_back(static_cast<std::int32_t>(segments_.pass.size()));
      lengths.push_back(wanted);
      const auto segments = static_cast<std::size_t>((units + wanted - 1) / wanted);
      segments_.pass.insert(segments_.pass.end(), segments, static_cast<std::int32_t>(pass));
    }
    for (const TaskId task : tasks) {
      if (pass_of_[index(task)] < 0) continue;
      const auto pass = static_cast<std::size_t>(pass_of_[index(task)]);
      segments_.segment[index(task)] = first[pass] + segments_.unit[index(task)] / lengths[pass];
    }
  }

  const MemoryView& view_;
  const std::vector<Activation>& activations_;
  std::vector<char>
      completes_;  ///< 1: it writes an activation; 2: nothing writes that activation later.
  ForwardSegments segments_;
  std::vector<std::int32_t> pass_of_;
  std::vector<std::int32_t> units_of_pass_;
  std::map<std::pair<std::int32_t, std::int32_t>, Progress> progress_;
};

}  // namespace

ForwardSegments cut_forward(const MemoryView& view, const std::vector<Activation>& activations,
                            std::int64_t length) {
  return Cutter(view, activations).cut(length);
}

}  // namespace foretrace
