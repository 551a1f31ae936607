// The figures of a job, step by step, so that their variation is known.

#include <algorithm>
#include <cmath>
#include <map>

#include "ask/check/job/job_summary.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"

namespace foretrace {
namespace {

using Figures = std::map<std::string, std::vector<std::int64_t>>;

constexpr std::int64_t kShareWhole = 1'000'000;

std::int64_t share_of(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 0
                    : std::llround(static_cast<double>(part) / static_cast<double>(whole) *
                                   static_cast<double>(kShareWhole));
}

/// The part of a thread's time that is work of a step. A thread that nothing waits for may live,
/// poll and sleep beside a step. The work of a thread that is only waited for is unknown between
/// its records.
enum class Part : char { none, recorded, all };

/// By lane: all time of threads that launch device work, recorded work of those they wait for.
/// Without any launch all threads count.
std::vector<Part> parts_of_threads(const Graph& graph) {
  std::vector<Part> parts(graph.lane_count(), Part::none);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.task(TaskId{i}).kind == TaskKind::launch && !graph.removed(TaskId{i}))
      parts[index(graph.lane_of(TaskId{i}))] = Part::all;
  }
  if (std::none_of(parts.begin(), parts.end(), [](Part part) { return part != Part::none; }))
    return std::vector<Part>(graph.lane_count(), Part::all);
  for (bool grows = true; grows;) {
    grows = false;
    graph.each_dependency([&](const Dependency& wait) {
      const std::uint32_t from = index(graph.lane_of(wait.before));
      const bool is_new = parts[index(graph.lane_of(wait.after))] != Part::none &&
                          parts[from] == Part::none &&
                          graph.lane(LaneId{from}).kind == LaneKind::host_thread;
      if (is_new) parts[from] = Part::recorded, grows = true;
    });
  }
  return parts;
}

/// Sums of each kind of work in each step.
class FigureSums {
 public:
  explicit FigureSums(const ObservedJob& job)
      : job_(job),
        steps_(job.graph),
        concealment_(job.graph, job.timeline),
        seen_(job.trace.hosts.size(), 0),
        parts_(parts_of_threads(job.graph)),
        moved_(steps_.count(), 0),
        hidden_(steps_.count(), 0) {
    for (const char* name :
         {"kernels", "launches", "syncs", "event_waits", "copies", "pageable_copies", "kernel_time",
          "copy_time", "host_time", "bytes_copied", "collectives"})
      figures_[name].assign(steps_.count(), 0);
    for (std::uint32_t i = 0; i < job.graph.lane_count(); ++i) {
      for (TaskId task = job.graph.first(LaneId{i}); task != kNoTask; task = job.graph.next(task))
        take(task);
    }
    for (auto& [name, values] : figures_) {
      for (std::int64_t& value : values) value = steps_.per_step(value);
    }
    for (std::size_t step = 0; step < steps_.count(); ++step) {
      if (moved_[step] > 0) figures_["overlap"].push_back(share_of(hidden_[step], moved_[step]));
    }
  }
  Figures take_figures() { return std::move(figures_); }

 private:
  void take(TaskId id) {
    const Task& task = job_.graph.task(id);
    const std::optional<std::size_t> column = steps_.column(task.step);
    if (task.kind == TaskKind::marker || !column) return;
    column_ = *column;
    if (runs_on_device(task.kind)) return take_device(id, task);
    const LaneKind lane = job_.graph.lane(job_.graph.lane_of(id)).kind;
    if (lane != LaneKind::host_thread) return;
    const std::uint32_t record = host_record(job_, id);
    const Part part = parts_[index(job_.graph.lane_of(id))];
    if (task.kind != TaskKind::input &&
        (part == Part::all || (part != Part::none && record != kNone)))
      add("host_time", task.duration.count());
    const bool is_first = record == kNone || seen_[record] == 0;
    if (record != kNone) seen_[record] = 1;
    if (task.kind == TaskKind::launch) add("launches", 1);
    if (!is_first) return;
    if (is_synchronizing(job_, id)) add("syncs", 1);
    if (job_.graph.name(id).find("StreamWaitEvent") != std::string_view::npos)
      add("event_waits", 1);
  }

  void take_device(TaskId id, const Task& task) {
    if (leaves_device(task.kind)) {
      moved_[column_] += task.duration.count();
      hidden_[column_] += concealment_.hidden(id).count();
    }
    if (task.kind == TaskKind::kernel) {
      add("kernels", 1);
      add("kernel_time", task.duration.count());
    } else if (task.kind == TaskKind::collective) {
      add("collectives", 1);
      add("collective_time", task.duration.count());
      add("bytes_communicated", task.bytes.count);
    } else if (task.kind != TaskKind::fill) {
      add("copies", 1);
      add("copy_time", task.duration.count());
      add("bytes_copied", task.bytes.count);
      if (is_pageable(job_.graph.name(id))) add("pageable_copies", 1);
    }
  }

  void add(const std::string& name, std::int64_t amount) {
    std::vector<std::int64_t>& values = figures_[name];
    values.resize(steps_.count(), 0);
    values[column_] += amount;
  }

  const ObservedJob& job_;
  SteadySteps steps_;
  Concealment concealment_;
  std::vector<char> seen_;
  std::vector<Part> parts_;  ///< By lane.
  std::vector<std::int64_t> moved_, hidden_;
  std::size_t column_ = 0;
  Figures figures_;
};

/// The shortest collective of a kind waits least for other ranks, so that its time is closest to
/// that of the transfer alone. By kernel and bytes.
std::map<std::pair<NameId, std::int64_t>, Nanoseconds> least_collectives(const Graph& graph) {
  std::map<std::pair<NameId, std::int64_t>, Nanoseconds> least;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::collective || graph.removed(TaskId{i})) continue;
    const auto [found, added] = least.try_emplace({task.name, task.bytes.count}, task.duration);
    if (!added) found->second = std::min(found->second, task.duration);
  }
  return least;
}

/// The share of the time of copies and collectives that could run beside kernels: replayed with
/// hosts that take no time, without delays, and with ranks that arrive together. Short work has
/// little weight on either side.
std::vector<std::int64_t> possible_overlap(const ObservedJob& job, const SteadySteps& steps) {
  Graph graph = job.graph.clone();
  const auto least = least_collectives(graph);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    Task& task = graph.task(TaskId{i});
    if (!runs_on_device(task.kind)) task.duration = 0ns;
    if (const auto found = least.find({task.name, task.bytes.count});
        task.kind == TaskKind::collective && found != least.end())
      task.duration = found->second;
    task.gap = 0ns;
    task.tail = {};
  }
  graph.change_dependencies([](Dependency& wait) { wait.lag = 0ns, wait.tail = {}; });
  const Timeline timeline = simulate(graph, {.reasons = false, .memory = false});
  const Concealment concealment(graph, timeline);
  std::vector<std::int64_t> moved(steps.count(), 0), hidden(steps.count(), 0), shares;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    const std::optional<std::size_t> column = steps.column(task.step);
    if (graph.removed(TaskId{i}) || !leaves_device(task.kind) || !column) continue;
    moved[*column] += task.duration.count();
    hidden[*column] += concealment.hidden(TaskId{i}).count();
  }
  for (std::size_t step = 0; step < steps.count(); ++step) {
    if (moved[step] > 0) shares.push_back(share_of(hidden[step], moved[step]));
  }
  return shares;
}

std::vector<std::int64_t> nanosecond_counts(std::vector<Nanoseconds> times) {
  std::vector<std::int64_t> all;
  for (const Nanoseconds time : times) all.push_back(time.count());
  return all;
}

}  // namespace

std::map<std::string, std::vector<std::int64_t>> figures_of(const ObservedJob& job) {
  Figures figures = FigureSums(job).take_figures();
  StepTimes times = step_times(job.graph, job.timeline);
  const Nanoseconds recorded = times.step_time;
  if (times.counted.empty()) times.counted.push_back(recorded);
  std::vector<Nanoseconds> single(times.each.begin() + static_cast<std::ptrdiff_t>(times.first),
                                  times.each.end());
  if (single.empty()) single = times.counted;
  figures["mean_step"] = figures["slowest_step"] = nanosecond_counts(std::move(single));
  figures["step_time"] = nanosecond_counts(std::move(times.counted));
  const Nanoseconds replayed = step_times(job.graph, job.replayed).step_time;
  figures["replay_error"] = {share_of(std::abs((replayed - recorded).count()), recorded.count())};
  const InputStalls stalls = input_stalls(job.graph, job.timeline);
  figures["input_stall"] = {
      (stalls.reading.stall + stalls.preparing.stall + stalls.waiting.stall + stalls.untold.stall)
          .count()};
  const Breakdown parts = breakdown(job.graph, job.timeline);
  figures["exposed_copy"] = {parts.copy.count()};
  if (figures.contains("collective_time"))
    figures["exposed_communication"] = {parts.communication.count()};
  std::vector<std::int64_t> overlap = possible_overlap(job, SteadySteps(job.graph));
  if (!overlap.empty()) figures["overlap_possible"] = std::move(overlap);
  return figures;
}

}  // namespace foretrace
