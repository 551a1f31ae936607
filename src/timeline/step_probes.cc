#include "timeline/step_probes.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "foretrace/error.h"
#include "timeline/step_distances.h"

namespace foretrace {

/// Finds the candidates. Starts never decrease along a FIFO lane, so the first task on a lane is
/// the earliest. A later task can at most start at the same time, and then counts only if it has a
/// lower id than all before it.
class ProbeFinder {
 public:
  ProbeFinder(const Graph& graph, StepProbes& probes) : graph_(graph), probes_(probes) {
    probe_of_.assign(graph.task_count(), kNone);
    place_lines();
    collect();
  }

  void find() {
    probes_.rule_ = graph_.step_rule();
    probes_.starts_ = starts(kNoLane);
    probes_.stream_of_.assign(graph_.task_count(), StepProbes::kNoStream);
    if (probes_.starts_.steps.size() < 3) return;
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) {
      if (can_mark_steps(graph_.lane(LaneId{i}))) add_stream(LaneId{i});
    }
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// A task with which a step may begin.
  struct StartCandidate {
    std::int32_t step;
    std::uint32_t line;   ///< Line of the launch; each removed task has a line of its own.
    std::uint32_t place;  ///< Place of the launch in its line.
    TaskId launch;
    TaskId task;

    auto key() const { return std::tuple(step, line, place, task); }
  };
  using StartCandidates = std::vector<StartCandidate>;
  /// The same three categories as in step_times().
  struct CandidateKinds {
    StartCandidates launched, device, host;
  };

  void place_lines() {
    line_.resize(graph_.task_count());
    place_.assign(graph_.task_count(), 0);
    const auto lanes = static_cast<std::uint32_t>(graph_.lane_count());
    for (std::uint32_t i = 0; i < graph_.task_count(); ++i) line_[i] = lanes + i;
    for (std::uint32_t i = 0; i < lanes; ++i) {
      if (graph_.first(LaneId{i}) != kNoTask &&
          graph_.lane(LaneId{i}).discipline != Discipline::fifo)
        throw Error(fmt::format("all lanes must run their tasks in order, but \"{}\" does not",
                                graph_.lane(LaneId{i}).name));
      std::uint32_t place = 0;
      for (TaskId task = graph_.first(LaneId{i}); task != kNoTask; task = graph_.next(task)) {
        line_[index(task)] = i;
        place_[index(task)] = place++;
      }
    }
  }

  bool in_step(TaskId task) const {
    const std::int32_t step = graph_.task(task).step;
    return step >= 0 && static_cast<std::size_t>(step) < graph_.steps().size() &&
           !graph_.removed(task);
  }

  StartCandidate make_candidate(TaskId launch, TaskId task) const {
    return {graph_.task(task).step, line_[index(launch)], place_[index(launch)], launch, task};
  }

  void collect() {
    by_lane_.resize(graph_.lane_count());
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) collect_line(LaneId{i});
    collect_launched();
    for (const StartCandidate& candidate : launched_)
      by_lane_[lane_of(candidate)].launched.push_back(candidate);
    all_.launched = launched_;
    host_lists_ = lists_of(std::move(all_.host));
  }

  /// Collects tasks that are candidates themselves: for each step the first in line, and later ones
  /// with a lower id than all before.
  void collect_line(LaneId lane) {
    std::vector<TaskId> least_on_device(graph_.steps().size(), kNoTask), least_on_host;
    least_on_host = least_on_device;
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      if (!in_step(task)) continue;
      const bool on_device = runs_on_device(graph_.task(task).kind);
      TaskId& least = (on_device ? least_on_device
                                 : least_on_host)[static_cast<std::size_t>(graph_.task(task).step)];
      if (task > least) continue;
      least = task;
      const StartCandidate candidate = make_candidate(task, task);
      (on_device ? all_.device : all_.host).push_back(candidate);
      if (on_device) by_lane_[index(lane)].device.push_back(candidate);
    }
  }

  /// Collects launched work; for each step, line of launches and stream, only what keep_earliest()
  /// would leave.
  void collect_launched() {
    EarliestCandidates earliest;
    const auto each = [&](const auto& visit) {
      graph_.each_dependency([&](const Dependency& wait) {
        if (wait.why != Rule::launch || wait.provenance != Provenance::measured) return;
        if (!in_step(wait.after) || !runs_on_device(graph_.task(wait.after).kind)) return;
        const StartCandidate candidate = make_candidate(wait.before, wait.after);
        visit(candidate, lane_of(candidate));
      });
    };
    each([&](const StartCandidate& candidate, std::uint32_t lane) {
      earliest.add(candidate, lane);
    });
    each([&](const StartCandidate& candidate, std::uint32_t lane) {
      if (earliest.can_be_earliest(candidate, lane)) launched_.push_back(candidate);
    });
  }

  std::uint32_t lane_of(const StartCandidate& candidate) const {
    return index(graph_.lane_of(candidate.task));
  }

  /// Decides which candidates can be the earliest: for each step and line (and stream, if given),
  /// the first, and later ones whose task has a lower id than that of the first.
  class EarliestCandidates {
   public:
    void add(const StartCandidate& candidate, std::uint32_t stream = 0) {
      First& known = first_of(candidate, stream);
      if (std::tie(candidate.place, candidate.task) < std::tie(known.place, known.task))
        known = {candidate.place, candidate.task};
    }
    bool can_be_earliest(const StartCandidate& candidate, std::uint32_t stream = 0) {
      return candidate.task <= first_of(candidate, stream).task;
    }

   private:
    struct First {
      std::uint32_t place = std::numeric_limits<std::uint32_t>::max();
      TaskId task = kNoTask;
    };
    using Key = std::tuple<std::int32_t, std::uint32_t, std::uint32_t>;  // Step, line, stream.

    First& first_of(const StartCandidate& candidate, std::uint32_t stream) {
      const Key key{candidate.step, candidate.line, stream};
      // Usually the key is the same as in the previous call.
      if (last_ == nullptr || key != last_key_) last_ = &firsts_[key];
      last_key_ = key;
      return *last_;
    }

    std::map<Key, First> firsts_;
    Key last_key_{};
    First* last_ = nullptr;
  };

  static void keep_earliest(StartCandidates& candidates) {
    EarliestCandidates earliest;
    for (const StartCandidate& candidate : candidates) earliest.add(candidate);
    std::erase_if(candidates, [&](const StartCandidate& candidate) {
      return !earliest.can_be_earliest(candidate);
    });
  }

  /// Returns by step the candidates that can be the earliest.
  std::vector<StartCandidates> lists_of(StartCandidates candidates) const {
    keep_earliest(candidates);
    std::sort(candidates.begin(), candidates.end(),
              [](const StartCandidate& a, const StartCandidate& b) { return a.key() < b.key(); });
    std::vector<StartCandidates> lists(graph_.steps().size());
    const StartCandidate* least = nullptr;
    for (const StartCandidate& candidate : candidates) {
      const bool same_line =
          least && least->step == candidate.step && least->line == candidate.line;
      if (same_line && candidate.task >= least->task) continue;
      lists[static_cast<std::size_t>(candidate.step)].push_back(candidate);
      least = &candidate;
    }
    return lists;
  }

  /// Considers only device tasks on the lane `only`, or all of them if it is kNoLane.
  StepProbes::Starts starts(LaneId only_lane) {
    CandidateKinds& kinds = only_lane == kNoLane ? all_ : by_lane_[index(only_lane)];
    const std::vector<StartCandidates> launched = lists_of(std::move(kinds.launched));
    const std::vector<StartCandidates> device = lists_of(std::move(kinds.device));
    if (host_numbers_.empty()) host_numbers_.assign(graph_.steps().size(), kNone);
    std::size_t with_device = 0, with_tasks = 0;
    for (std::size_t step = 0; step < graph_.steps().size(); ++step) {
      with_device += device[step].empty() ? 0 : 1;
      with_tasks += device[step].empty() && host_lists_[step].empty() ? 0 : 1;
    }
    const bool by_device = marked_by_device(with_device, with_tasks);
    StepProbes::Starts step_starts;
    for (std::size_t step = 0; step < graph_.steps().size(); ++step) {
      const auto number = static_cast<std::int32_t>(step);
      if (by_device && !launched[step].empty()) {
        step_starts.steps.push_back({number, add_list(launched[step])});
      } else if (!by_device && !host_lists_[step].empty()) {
        if (host_numbers_[step] == kNone) host_numbers_[step] = add_list(host_lists_[step]);
        step_starts.steps.push_back({number, host_numbers_[step]});
      } else if (!device[step].empty()) {
        step_starts.steps.push_back({number, add_list(device[step])});
      }
    }
    if (!step_starts.steps.empty() && last_counts(step_starts.steps.size())) {
      find_end(step_starts);
      find_begins(step_starts, only_lane);
    }
    return step_starts;
  }

  /// Whether a step begins with device work; the candidates of one step are all of one kind.
  bool begins_on_device(const StepProbes::Start& start) const {
    const TaskId begins = probes_.tasks_[probes_.lists_[start.list].front().task];
    return runs_on_device(graph_.task(begins).kind);
  }

  void find_begins(StepProbes::Starts& step_starts, LaneId only_lane) {
    for (const StepProbes::Start& start : step_starts.steps) {
      StepProbes::Begin& begin = step_starts.begins.emplace_back();
      if (!begins_on_device(start)) continue;
      for (const LaneId lane : launching_lanes(start.step)) {
        const TaskId first = first_of_step(graph_, lane, start.step, false);
        if (first != kNoTask) begin.host.push_back(probe(first));
      }
      for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) {
        if (only_lane != kNoLane && only_lane != LaneId{i}) continue;
        const TaskId front = in_front_of_step(graph_, LaneId{i}, start.step);
        if (front != kNoTask) begin.backlog.push_back(probe(front));
        const TaskId pinned = pinned_begin(graph_, LaneId{i}, start.step);
        if (pinned != kNoTask) begin.pinned.push_back(probe(pinned));
      }
    }
  }

  std::uint32_t add_list(const StartCandidates& candidates) {
    StepProbes::Candidates& list = probes_.lists_.emplace_back();
    for (const StartCandidate& candidate : candidates)
      list.push_back({probe(candidate.launch), probe(candidate.task)});
    return static_cast<std::uint32_t>(probes_.lists_.size() - 1);
  }

  std::uint32_t probe(TaskId task) {
    std::uint32_t& number = probe_of_[index(task)];
    if (number == kNone) {
      number = static_cast<std::uint32_t>(probes_.tasks_.size());
      probes_.tasks_.push_back(task);
    }
    return number;
  }

  void add_stream(LaneId lane) {
    const auto number = static_cast<std::int32_t>(probes_.streams_.size());
    const std::vector<StepProbes::Start>& marks = probes_.starts_.steps;
    const MarkedSteps steps{marks[1].step, marks.back().step};
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      if (steps.has(graph_.task(task))) probes_.stream_of_[index(task)] = number;
    }
    probes_.streams_.push_back({lane, starts(lane), device_steps_on(graph_, lane)});
  }

  /// Finds the tasks that can be the last to finish: among the device work of the last step (or its
  /// host work), and on each thread that launches it.
  void find_end(StepProbes::Starts& step_starts) {
    const StepProbes::Start& last = step_starts.steps.back();
    const bool on_device = begins_on_device(last);
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i)
      add_ends(LaneId{i}, last.step, on_device, step_starts.work);
    if (!on_device) return;
    for (const LaneId lane : launching_lanes(last.step)) {
      add_ends(lane, last.step, false, step_starts.host);
      for (const auto& [front, waits] : waits_for_device(graph_, lane, last.step))
        step_starts.waits.emplace_back(probe(front), probe(waits));
    }
  }

  void add_ends(LaneId lane, std::int32_t step, bool on_device, std::vector<std::uint32_t>& ends) {
    TaskId last = kNoTask;
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      // A task with a tail can finish before its predecessor, which then counts too.
      if (last != kNoTask && !graph_.task(task).tail.empty()) {
        ends.push_back(probe(last));
        last = kNoTask;
      }
      if (graph_.task(task).step != step || runs_on_device(graph_.task(task).kind) != on_device)
        continue;
      last = task;
    }
    if (last != kNoTask) ends.push_back(probe(last));
  }

  std::set<LaneId> launching_lanes(std::int32_t step) const {
    std::set<LaneId> lanes;
    for (const StartCandidate& candidate : launched_) {
      if (candidate.step == step) lanes.insert(graph_.lane_of(candidate.launch));
    }
    return lanes;
  }

  const Graph& graph_;
  StepProbes& probes_;
  std::vector<std::uint32_t> line_, place_;  ///< By task.
  std::vector<std::uint32_t> probe_of_;      ///< By task: index into the found tasks, or kNone.
  CandidateKinds all_;
  StartCandidates launched_;  ///< Those of measured launches that can be the earliest.
  std::vector<CandidateKinds> by_lane_;
  std::vector<StartCandidates> host_lists_;
  std::vector<std::uint32_t> host_numbers_;  ///< By step: index into the found lists, or kNone.
};

StepProbes::StepProbes(const Graph& graph) { ProbeFinder(graph, *this).find(); }

std::vector<Nanoseconds> StepProbes::work(const Graph& graph) const {
  std::vector<Nanoseconds> sums(streams_.size(), 0ns);
  for (std::uint32_t i = 0; i < stream_of_.size(); ++i) {
    if (stream_of_[i] == kNoStream) continue;
    sums[static_cast<std::size_t>(stream_of_[i])] += graph.task(TaskId{i}).duration;
  }
  return sums;
}

namespace {

Nanoseconds earliest(const std::vector<std::uint32_t>& tasks, const ProbedTimes& times) {
  Nanoseconds start = Nanoseconds::max();
  for (const std::uint32_t task : tasks) start = std::min(start, times.starts[task]);
  return start;
}

Nanoseconds latest(const std::vector<std::uint32_t>& tasks, const ProbedTimes& times) {
  Nanoseconds finish = Nanoseconds::min();
  for (const std::uint32_t task : tasks) finish = std::max(finish, times.finishes[task]);
  return finish;
}

}  // namespace

std::vector<Nanoseconds> StepProbes::mark_times(const Starts& starts,
                                                const ProbedTimes& times) const {
  std::vector<Nanoseconds> marks;
  marks.reserve(starts.steps.size());
  for (std::size_t i = 0; i < starts.steps.size(); ++i) {
    const Candidate* best = nullptr;
    for (const Candidate& candidate : lists_[starts.steps[i].list]) {
      const auto key = [&](const Candidate& each) {
        return std::tuple(times.starts[each.launch], tasks_[each.task]);
      };
      if (!best || key(candidate) < key(*best)) best = &candidate;
    }
    marks.push_back(times.starts[best->task]);
    if (i >= starts.begins.size()) continue;
    const Nanoseconds host = earliest(starts.begins[i].host, times);
    Nanoseconds backlog = latest(starts.begins[i].backlog, times);
    for (const std::uint32_t task : starts.begins[i].pinned)
      backlog = std::max(backlog, times.starts[task]);
    marks.back() = begin_of_step(marks.back(), host, backlog);
  }
  return marks;
}

LastStep StepProbes::last_step(const Starts& starts, const ProbedTimes& times,
                               const std::vector<Nanoseconds>& marks) const {
  if (starts.begins.empty()) return {};
  StepEnd end{.work = latest(starts.work, times),
              .host = latest(starts.host, times),
              .host_begin = earliest(starts.begins.back().host, times),
              .first_host_begin = earliest(starts.begins.front().host, times)};
  for (const auto& [front, waits] : starts.waits)
    end.waited += times.starts[waits] - times.finishes[front];
  return {end.length(marks.front(), marks.back()), end.host_span()};
}

const StepProbes::Starts& StepProbes::decisive_starts(const std::vector<Nanoseconds>& marks,
                                                      const ProbedTimes& times) const {
  const Starts* starts = &starts_;
  if (marks.size() < 3) return *starts;
  if (!std::is_sorted(marks.begin(), marks.end())) {
    std::size_t most = 0;
    for (const Stream& stream : streams_) {
      if (stream.steps > most) most = stream.steps, starts = &stream.starts;
    }
    return *starts;
  }
  Nanoseconds most = room_between(marks[1], marks.back());
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (times.work[i] > most) most = times.work[i], starts = &streams_[i].starts;
  }
  return *starts;
}

StepTimes StepProbes::step_times(const ProbedTimes& times) const {
  CHECK(times.starts.size() == tasks_.size() && times.work.size() == streams_.size());
  if (starts_.steps.empty()) return times_without_steps(rule_, times.length);
  std::vector<Nanoseconds> marks = mark_times(starts_, times);
  const Starts& starts = decisive_starts(marks, times);
  if (&starts != &starts_) marks = mark_times(starts, times);
  for (std::size_t i = 1; i < marks.size(); ++i) marks[i] = std::max(marks[i], marks[i - 1]);
  return times_between(rule_, marks, last_step(starts, times, marks));
}

}  // namespace foretrace
