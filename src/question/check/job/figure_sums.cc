// The figures of a job, step by step, so that their variation is known.

#include <algorithm>
#include <map>

#include "base/statistics.h"
#include "question/check/job/figures.h"

namespace foretrace {
namespace {

/// Which part of a thread's time counts as work of a step. A thread that nothing waits for may
/// live, poll and sleep beside a step, so none counts. A thread that is only waited for counts with
/// its records, because what it does between them is unknown.
enum class CountedPart : char { none, recorded, all };

/// The counted part of each lane: all time of threads that launch device work, and the recorded
/// work of threads they wait for. If nothing is launched, all threads count.
std::vector<CountedPart> counted_parts(const Graph& graph) {
  std::vector<CountedPart> parts(graph.lane_count(), CountedPart::none);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.task(TaskId{i}).kind == TaskKind::launch && !graph.removed(TaskId{i}))
      parts[index(graph.lane_of(TaskId{i}))] = CountedPart::all;
  }
  if (std::none_of(parts.begin(), parts.end(),
                   [](CountedPart part) { return part != CountedPart::none; }))
    return std::vector<CountedPart>(graph.lane_count(), CountedPart::all);
  for (bool grows = true; grows;) {
    grows = false;
    graph.each_dependency([&](const Dependency& wait) {
      const std::uint32_t from = index(graph.lane_of(wait.before));
      const bool is_new = parts[index(graph.lane_of(wait.after))] != CountedPart::none &&
                          parts[from] == CountedPart::none &&
                          graph.lane(LaneId{from}).kind == LaneKind::host_thread;
      if (is_new) parts[from] = CountedPart::recorded, grows = true;
    });
  }
  return parts;
}

std::int64_t amount_of(const Task& task, FigureUnit unit) {
  if (unit == FigureUnit::time) return task.duration.count();
  return unit == FigureUnit::bytes ? task.bytes.count : 1;
}

/// Sums over the tasks of each step, for the figures that are defined as such sums.
class FigureSums {
 public:
  explicit FigureSums(const ObservedJob& job)
      : job_(job),
        steps_(job.graph),
        seen_(job.trace.hosts.size(), 0),
        parts_(counted_parts(job.graph)),
        sums_(figure_rules().size(), StepValues(steps_.count(), 0)) {
    for (std::uint32_t i = 0; i < job.graph.lane_count(); ++i) {
      for (TaskId task = job.graph.first(LaneId{i}); task != kNoTask; task = job.graph.next(task))
        count(task);
    }
  }

  bool has_collectives() const { return has_collectives_; }
  /// Sums in each step for the figure at this index of the table.
  StepValues sums(std::size_t place) const {
    StepValues values = sums_[place];
    for (std::int64_t& value : values) value = steps_.per_step(value);
    return values;
  }

 private:
  void count(TaskId id) {
    const Graph& graph = job_.graph;
    CountedTask counted{.job = job_, .id = id, .task = graph.task(id)};
    const std::optional<std::size_t> column = steps_.column(counted.task.step);
    if (counted.task.kind == TaskKind::marker || !column) return;
    if (!runs_on_device(counted.task.kind)) {
      const LaneId lane = graph.lane_of(id);
      if (graph.lane(lane).kind != LaneKind::host_thread) return;
      const std::uint32_t record = host_record(job_, id);
      const CountedPart part = parts_[index(lane)];
      counted.is_step_work =
          part == CountedPart::all || (part == CountedPart::recorded && record != kNone);
      counted.begins_call = record == kNone || seen_[record] == 0;
      if (record != kNone) seen_[record] = 1;
    }
    has_collectives_ = has_collectives_ || counted.task.kind == TaskKind::collective;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const FigureRule& rule = figure_rules()[i];
      if (rule.of_kind ? rule.of_kind(counted.task.kind) : rule.of_task && rule.of_task(counted))
        sums_[i][*column] += amount_of(counted.task, rule.entry.unit);
    }
  }

  const ObservedJob& job_;
  SteadySteps steps_;
  std::vector<char> seen_;          ///< By host record: whether a task of it was counted.
  std::vector<CountedPart> parts_;  ///< By lane.
  std::vector<StepValues> sums_;    ///< Indexed like figure_rules().
  bool has_collectives_ = false;
};

}  // namespace

std::vector<UsualLength> usual_lengths(const StepTimes& times) {
  const auto period = static_cast<std::size_t>(std::max(1, times.period));
  std::vector<std::vector<std::int64_t>> at_place(period);
  for (std::size_t i = 0; i < times.steps(); ++i)
    at_place[i % period].push_back(times.each[times.first + i].count());
  std::vector<Nanoseconds> usual;
  for (std::vector<std::int64_t>& lengths : at_place)
    usual.emplace_back(lengths.empty() ? 0 : lower_median(std::move(lengths)));
  std::vector<UsualLength> steps;
  for (std::size_t i = 0; i < times.steps(); ++i)
    steps.push_back({times.each[times.first + i], usual[i % period]});
  return steps;
}

StepValues counted_lengths(const StepTimes& times) {
  StepValues lengths;
  for (const Nanoseconds time : times.counted) lengths.push_back(time.count());
  if (lengths.empty()) lengths.push_back(times.step_time.count());
  return lengths;
}

std::optional<Nanoseconds> step_time_of(const JobSummary& summary) {
  const auto steps = summary.figures.find(kStepTime);
  if (steps == summary.figures.end()) return std::nullopt;
  return Nanoseconds(figure_value(figure_rule(kStepTime).entry, steps->second));
}

FigureSteps figures_of(const ObservedJob& job) {
  const FigureSums sums(job);
  const MeasuredJob measured{.job = job,
                             .recorded = step_times(job.graph, job.timeline),
                             .replayed = step_times(job.graph, job.replayed),
                             .stalls = input_stalls(job.graph, job.timeline),
                             .parts = breakdown(job.graph, job.timeline)};
  FigureSteps figures;
  for (std::size_t i = 0; i < figure_rules().size(); ++i) {
    const FigureRule& rule = figure_rules()[i];
    if (rule.needs_collectives && !sums.has_collectives()) continue;
    StepValues values = rule.of_kind || rule.of_task ? sums.sums(i)
                        : rule.of_job                ? rule.of_job(measured)
                                                     : StepValues{};
    if (!values.empty() || rule.against != nullptr)
      figures[std::string(rule.entry.name)] = std::move(values);
  }
  return figures;
}

void add_memory_figures(const MeasuredMemory& memory, FigureSteps& figures) {
  for (const FigureRule& rule : figure_rules()) {
    if (rule.of_memory == nullptr) continue;
    if (StepValues values = rule.of_memory(memory); !values.empty())
      figures[std::string(rule.entry.name)] = std::move(values);
  }
}

void compare_kernels(const JobSummary& before, JobSummary& now) {
  for (const FigureRule& rule : figure_rules()) {
    const auto figure = now.figures.find(rule.entry.name);
    if (rule.against == nullptr || figure == now.figures.end()) continue;
    figure->second = rule.against(before, now);
    if (figure->second.empty()) now.figures.erase(figure);
  }
}

}  // namespace foretrace
