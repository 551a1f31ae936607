#include "render/host_slices.h"

#include <algorithm>
#include <unordered_map>

namespace foretrace {
namespace {

constexpr std::string_view kMarker = "ProfilerStep#";

bool is_call(TaskKind kind) { return kind == TaskKind::launch || kind == TaskKind::sync; }

std::string_view annotation_of(Phase phase) {
  switch (phase) {
    case Phase::input:
      return "enumerate(DataLoader)#next";
    case Phase::backward:
      return "autograd::engine::evaluate_function: backward";
    case Phase::update:
      return "Optimizer.step#step";
    default:
      return "";
  }
}

/// Whether a task stands for time without records.
bool is_untraced(std::string_view name) { return name.starts_with('(') && name.ends_with(')'); }

bool names_call(std::string_view name) {
  return name.starts_with("cuda") || name.starts_with("hip") ||
         (name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z');
}

/// The step, phase and module that a slice belongs to.
struct SliceContext {
  std::int32_t step = -1;
  Phase phase = Phase::none;
  NameId module{};
};

class HostLane {
 public:
  HostLane(const Graph& graph, const Timeline& timeline, LaneId lane, const Trace* recorded)
      : graph_(graph), timeline_(timeline), recorded_(recorded) {
    for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
      if (graph.task(task).kind != TaskKind::marker) add(task);
    }
    show_ends();
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      if (is_part_of_op(i)) last_of_op_[record_of(i)] = i;
    }
  }

  /// Returns the slices in order, outer before inner: steps around phases around modules around ops
  /// around calls.
  std::vector<HostSlice> take(bool marks_steps) {
    std::vector<HostSlice> all;
    std::size_t step_end = 0, phase_end = 0, module_end = 0;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      if (i == step_end) {
        step_end = end_of_run(i, slices_.size(), [](const SliceContext& a, const SliceContext& b) {
          return a.step == b.step;
        });
        if (marks_steps && contexts_[i].step >= 0) all.push_back(step_marker(i, step_end));
      }
      if (i == phase_end) {
        phase_end = end_of_run(i, step_end, [](const SliceContext& a, const SliceContext& b) {
          return a.phase == b.phase;
        });
        const std::string_view name = annotation_of(contexts_[i].phase);
        if (!name.empty())
          all.push_back(enclosing_slice(i, phase_end, HostKind::annotation, std::string(name)));
      }
      if (i == module_end) {
        module_end = end_of_run(i, phase_end, [](const SliceContext& a, const SliceContext& b) {
          return a.module == b.module;
        });
        const std::string_view module = graph_.names()[contexts_[i].module];
        if (!module.empty())
          all.push_back(enclosing_slice(i, module_end, HostKind::python,
                                        "nn.Module: " + std::string(module)));
      }
      take_slice(i, recorded_ == nullptr ? module_end : step_end, all);
    }
    return all;
  }

 private:
  void add(TaskId id) {
    const Task& task = graph_.task(id);
    const Nanoseconds until = slices_.empty() ? timeline_.start[index(id)] : slices_.back().finish;
    HostSlice slice;
    slice.start = std::max(timeline_.start[index(id)], until);
    slice.finish = std::max(slice.start, timeline_.finish[index(id)]);
    slice.task = id;
    slice.waits = is_call(task.kind) && !awaited_lanes(graph_, id).empty();
    if (task.kind == TaskKind::launch) slice.launch = id;
    if (continues_call(task)) return extend(slice);
    const std::string_view name = graph_.names()[task.name];
    slice.kind = is_call(task.kind) || names_call(name) ? HostKind::runtime : HostKind::op;
    if (slice.correlated()) {
      slice.name = call_name(task, slice.waits);
      // The host spends the time before it in the call.
      if (slice.waits) slice.start = until;
    }
    slices_.push_back(std::move(slice));
    contexts_.push_back(context_of(task));
    is_untraced_.push_back(is_untraced(name));
    is_step_marker_.push_back(name.starts_with(kMarker));
  }

  /// With records, phases and modules follow from the surrounding records, as they did in the
  /// recording.
  SliceContext context_of(const Task& task) const {
    if (recorded_ == nullptr) return {task.step, task.phase, task.module};
    const bool is_recorded = task.record < recorded_->hosts.size();
    return {task.step, is_recorded ? Phase::none : task.phase, {}};
  }

  bool is_hidden(std::size_t i) const { return is_untraced_[i] || is_step_marker_[i]; }

  /// Makes hidden slices at both ends visible: a reader can infer time without a record only
  /// between written slices.
  void show_ends() {
    std::size_t first = 0, last = slices_.size();
    for (; first < last && is_hidden(first); ++first) is_untraced_[first] = false;
    for (; last > first && is_hidden(last - 1); --last) is_untraced_[last - 1] = false;
  }

  std::uint32_t record_of(std::size_t i) const { return graph_.task(slices_[i].task).record; }

  /// Whether a slice is part of an op, annotation or frame, between the calls and ops inside it.
  bool is_part_of_op(std::size_t i) const {
    return !is_hidden(i) && slices_[i].kind != HostKind::runtime && record_of(i) != kNone;
  }

  /// An op begins with its first part, and ends with its last or where its surroundings end.
  void take_slice(std::size_t i, std::size_t limit, std::vector<HostSlice>& all) {
    while (!open_ops_.empty() && open_ops_.back().end <= i) open_ops_.pop_back();
    if (is_hidden(i)) return;
    if (!is_part_of_op(i)) return all.push_back(std::move(slices_[i]));
    const std::uint32_t record = record_of(i);
    if (!open_ops_.empty() && open_ops_.back().record == record) return;
    if (!open_ops_.empty()) limit = std::min(limit, open_ops_.back().end);
    const std::size_t end = std::min(limit, last_of_op_.at(record) + 1);
    HostSlice op = enclosing_slice(i, end, slices_[i].kind, {});
    op.task = slices_[i].task;
    if (recorded_ != nullptr && record < recorded_->hosts.size())
      describe(recorded_->hosts[record], op);
    all.push_back(std::move(op));
    open_ops_.push_back({record, end});
  }

  static void describe(const HostRecord& record, HostSlice& op) {
    if (record.kind == HostKind::annotation) op.kind = HostKind::annotation;
    if (record.kind == HostKind::python) op.kind = HostKind::python;
    op.details = record.details;
  }

  /// Whether the previous slice came from the same record of a call.
  bool continues_call(const Task& task) const {
    if (slices_.empty() || task.record == 0xffffffff) return false;
    const Task& before = graph_.task(slices_.back().task);
    return before.record == task.record && slices_.back().kind == HostKind::runtime;
  }

  void extend(const HostSlice& rest) {
    HostSlice& call = slices_.back();
    call.finish = rest.finish;
    if (!call.correlated() && rest.correlated()) {
      call.name = call_name(graph_.task(call.task), rest.waits);
    }
    if (call.launch == kNoTask) call.launch = rest.launch;
    if (rest.waits) call.waits = true, call.task = rest.task;
  }

  std::string call_name(const Task& task, bool waits) const {
    const std::string_view name = graph_.names()[task.name];
    if (task.kind == TaskKind::launch || !waits || task.record != 0xffffffff ||
        name.find("ynchronize") != std::string_view::npos) {
      return std::string(name);
    }
    return "cudaStreamSynchronize";
  }

  template <class IsSame>
  std::size_t end_of_run(std::size_t begin, std::size_t limit, IsSame is_same) const {
    std::size_t end = begin + 1;
    while (end < limit && is_same(contexts_[begin], contexts_[end])) ++end;
    return end;
  }

  HostSlice enclosing_slice(std::size_t begin, std::size_t end, HostKind kind,
                            std::string name) const {
    HostSlice slice;
    slice.start = slices_[begin].start;
    slice.finish = slices_[end - 1].finish;
    slice.kind = kind;
    slice.name = std::move(name);
    return slice;
  }

  /// Returns the marker of a step, which lasts until the next begins.
  HostSlice step_marker(std::size_t begin, std::size_t end) const {
    const auto step = static_cast<std::size_t>(contexts_[begin].step);
    std::string name = step < graph_.steps().size() ? graph_.steps()[step].name : std::string();
    if (!name.starts_with(kMarker)) name = std::string(kMarker) + std::to_string(step);
    HostSlice slice = enclosing_slice(begin, end, HostKind::annotation, std::move(name));
    if (end < slices_.size()) slice.finish = slices_[end].start;
    return slice;
  }

  /// An op that is being written, up to (not including) slice `end`.
  struct OpenOp {
    std::uint32_t record = kNone;
    std::size_t end = 0;
  };

  const Graph& graph_;
  const Timeline& timeline_;
  const Trace* recorded_;
  std::vector<HostSlice> slices_;
  std::vector<SliceContext> contexts_;
  std::vector<bool> is_untraced_;
  /// By slice: whether it is a step marker; steps are marked as a whole.
  std::vector<bool> is_step_marker_;
  std::unordered_map<std::uint32_t, std::size_t> last_of_op_;  ///< By host record.
  std::vector<OpenOp> open_ops_;
};

/// Whether to mark steps on the host. In a recording without launches, steps are inferred from
/// device work, and host marks would move them.
bool marks_steps(const Graph& graph) {
  if (graph.steps().empty()) return false;
  if (graph.steps().front().name.starts_with(kMarker)) return true;
  std::vector<bool> launched(graph.task_count(), false);
  graph.each_dependency([&](const Dependency& wait) {
    if (graph.task(wait.before).kind == TaskKind::launch) launched[index(wait.after)] = true;
  });
  for (std::size_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(static_cast<TaskId>(i));
    if (runs_on_device(task.kind) && task.step >= 0 && !launched[i]) return false;
  }
  return true;
}

/// Returns the lane on which most steps have their first host task.
std::size_t thread_of_steps(const Graph& graph, const Timeline& timeline) {
  struct FirstTask {
    Nanoseconds start = Nanoseconds::max();
    std::size_t lane = 0;
  };
  std::vector<FirstTask> firsts(graph.steps().size());
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const auto lane = static_cast<LaneId>(i);
    if (!is_host_lane(graph.lane(lane))) continue;
    for (TaskId id = graph.first(lane); id != kNoTask; id = graph.next(id)) {
      const auto step = static_cast<std::size_t>(graph.task(id).step);
      if (step >= firsts.size() || timeline.start[index(id)] >= firsts[step].start) continue;
      firsts[step] = {timeline.start[index(id)], i};
    }
  }
  std::vector<std::size_t> counts(graph.lane_count() + 1, 0);
  for (const FirstTask& first : firsts) {
    if (first.start != Nanoseconds::max()) ++counts[first.lane];
  }
  return static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

/// Readers begin with the first event. If the timeline begins earlier, because threads that nothing
/// waits for were left out, an annotation covers the time before.
void show_begin(const Graph& graph, const Timeline& timeline, HostSlices& all) {
  Nanoseconds first = Nanoseconds::max();
  for (std::size_t i = 0; i < graph.task_count(); ++i) {
    if (graph.task(static_cast<TaskId>(i)).kind == TaskKind::marker) continue;
    first = std::min(first, timeline.start[i]);
  }
  for (std::vector<HostSlice>& slices : all) {
    if (slices.empty() || slices.front().start != first || first <= 0ns) continue;
    HostSlice before;
    before.finish = first;
    before.kind = HostKind::annotation;
    before.name = "(before the first record)";
    slices.insert(slices.begin(), std::move(before));
    return;
  }
}

}  // namespace

bool is_host_lane(const Lane& lane) {
  return lane.kind == LaneKind::host_thread || lane.kind == LaneKind::worker ||
         lane.kind == LaneKind::origin || lane.kind == LaneKind::storage;
}

HostSlices host_slices(const Graph& graph, const Timeline& timeline, const Trace* recorded) {
  HostSlices all(graph.lane_count());
  std::vector<std::pair<std::size_t, HostLane>> lanes;
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const auto lane = static_cast<LaneId>(i);
    if (is_host_lane(graph.lane(lane)))
      lanes.emplace_back(i, HostLane(graph, timeline, lane, recorded));
  }
  // Steps are marked once, on the thread that begins most of them.
  const std::size_t main = thread_of_steps(graph, timeline);
  const bool marks = marks_steps(graph);
  for (auto lane = lanes.begin(); lane != lanes.end(); ++lane) {
    all[lane->first] = lane->second.take(marks && lane->first == main);
  }
  show_begin(graph, timeline, all);
  return all;
}

std::vector<LaneId> awaited_lanes(const Graph& graph, TaskId task) {
  std::vector<LaneId> lanes;
  graph.each_wait(task, [&](const Dependency& wait) {
    if (!runs_on_device(graph.task(wait.before).kind) || wait.anchor == Anchor::start) return;
    const LaneId lane = graph.lane_of(wait.before);
    if (std::find(lanes.begin(), lanes.end(), lane) == lanes.end()) lanes.push_back(lane);
  });
  return lanes;
}

}  // namespace foretrace
