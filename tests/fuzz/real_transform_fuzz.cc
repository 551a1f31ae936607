// Any transforms with any settings, one after another, on recorded graphs: an Error, or a graph
// that can be replayed. In it every task has its time, every wait is kept, work that a transform
// does not claim to change is the same, and memory adds up.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/allocator.h"
#include "foretrace/error.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "fuzz/drawn_transform.h"
#include "fuzz/recordings.h"
#include "fuzz/supply.h"
#include "job/apply.h"
#include "transform/checked.h"

namespace {

using namespace foretrace;

/// Beyond this many tasks no more transforms are applied, because large graphs are allowed but
/// slow.
constexpr std::size_t kMaxTasks = 60'000;

std::string asked;  // For the reader of a crash.

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\nwith %s\n", what, asked.c_str());
  std::abort();
}

/// True for transforms that edit waits, order, lanes or memory, and nothing else.
bool leaves_work_alone(std::string_view transform) {
  static const std::set<std::string_view> all = {"add_dependency",    "move",    "priority",
                                                 "remove_dependency", "reorder", "resize"};
  return all.contains(transform);
}

/// True for transforms by which the user chooses who waits for whom, or in which order tasks run;
/// the choice may contradict existing waits.
bool may_make_a_cycle(std::string_view transform) {
  static const std::set<std::string_view> all = {"add_dependency", "move", "reorder", "replace"};
  return all.contains(transform);
}

using Work = std::vector<std::optional<Nanoseconds>>;

/// The duration of each task that is not removed, by its number.
Work work_of(const Graph& graph) {
  Work work(graph.task_count());
  for (std::uint32_t i = 0; i < work.size(); ++i) {
    if (!graph.removed(TaskId{i})) work[i] = graph.task(TaskId{i}).duration;
  }
  return work;
}

/// The work after the transform, as the transform announces it before it is applied; nullopt if it
/// announces nothing.
std::optional<Work> work_to_come(const DrawnTransform& drawn, const Graph& graph) {
  Work work = work_of(graph);
  if (leaves_work_alone(drawn.name)) return work;
  const Retimes* const retimes = drawn.transform->retimes();
  if (retimes == nullptr ||
      std::none_of(drawn.settings.items().begin(), drawn.settings.items().end(),
                   [&](const auto& item) { return retimes->only_retimes(item.key()); }))
    return {};
  const std::vector<RetimedTask> tasks = retimes->retimed(graph);
  std::vector<Nanoseconds> before, after(tasks.size());
  for (const RetimedTask& task : tasks) before.push_back(graph.task(task.task).duration);
  retimes->retime(tasks, before, after);
  for (std::size_t i = 0; i < tasks.size(); ++i) work[index(tasks[i].task)] = after[i];
  return work;
}

/// A split without overhead keeps this sum, in more tasks.
Nanoseconds sum(const Work& work) {
  Nanoseconds all{0};
  for (const auto& one : work) all += one.value_or(0ns);
  return all;
}

/// Leaves out splits into very many slices, which are allowed but slow.
bool is_small(const DrawnTransform& drawn, const Graph& graph) {
  if (drawn.name != "split") return true;
  std::size_t all = graph.task_count();
  const Bytes size = parse_bytes(drawn.settings.at("size").get<std::string>());
  for (std::uint32_t i = 0; size.count > 0 && i < graph.task_count(); ++i)
    all += static_cast<std::size_t>(graph.task(TaskId{i}).bytes.count / size.count);
  return all < kMaxTasks;
}

/// Returns false if the step is refused; the graph may then be half edited.
bool apply_one(DrawnTransform drawn, const Graph& donor, Graph& graph) {
  asked += drawn.settings.dump() + "\n";
  if (!is_small(drawn, graph)) return false;
  const std::string_view name = drawn.name;
  const bool splits = name == "split" && drawn.settings.at("overhead") == "0ns";
  const Work before = work_of(graph);
  Scenario scenario;
  std::optional<Work> expected;
  try {
    expected = work_to_come(drawn, graph);
    if (!drawn.transform->donor().empty()) {
      apply_checked(*drawn.transform, graph, {.donor = &donor});
    } else {
      scenario.transforms.push_back(std::move(drawn.transform));
      apply(scenario, graph);
    }
  } catch (const Error&) {
    return false;
  }
  const Work after = work_of(graph);
  if (expected) require(after == *expected, "work is not what the transform says");
  if (splits) require(sum(before) == sum(after), "slices are not the whole");
  return true;
}

std::string described(const Graph& graph, const Timeline& timeline, TaskId task) {
  const auto at = [](Nanoseconds time) { return std::to_string(time.count()); };
  return "\n" + std::to_string(index(task)) + " \"" + std::string(graph.name(task)) + "\" on " +
         graph.lane(graph.lane_of(task)).name + ", " + at(timeline.start[index(task)]) + " to " +
         at(timeline.finish[index(task)]);
}

void check_wait(const Graph& graph, const Timeline& timeline, const Dependency& wait) {
  if (graph.removed(wait.before) || graph.removed(wait.after)) return;
  const std::size_t before = index(wait.before), after = index(wait.after);
  const Nanoseconds start = timeline.start[before];
  const bool fifo = graph.lane(graph.lane_of(wait.before)).discipline == Discipline::fifo;
  Dependency kept = wait;
  if (!fifo) kept.tail = {};
  if (timeline.start[after] >= released_at(kept, start, timeline.finish[before])) return;
  const std::string what = "a wait is not kept: lag " + std::to_string(wait.lag.count()) +
                           described(graph, timeline, wait.before) +
                           described(graph, timeline, wait.after);
  require(false, what.c_str());
}

/// Tasks on a FIFO lane take their time, one after another.
void check_line(const Graph& graph, const Timeline& timeline, LaneId lane) {
  const bool fifo = graph.lane(lane).discipline == Discipline::fifo;
  for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
    const Nanoseconds start = timeline.start[index(task)], finish = timeline.finish[index(task)];
    require(start >= 0ns && finish >= start && finish <= timeline.length, "time is negative");
    const Nanoseconds duration = graph.task(task).duration;
    require(fifo ? finish - start == duration : finish - start >= duration, "work is lost");
    const TaskId front = graph.previous(task);
    if (!fifo || front == kNoTask) continue;
    const Nanoseconds earliest =
        released_at(graph.task(task), timeline.start[index(front)], timeline.finish[index(front)]);
    require(start >= earliest, "the line is not kept");
  }
}

void check_memory(const Graph& graph, const Timeline& timeline, bool replayed) {
  for (const MemoryCurve& curve : timeline.memory) {
    Bytes most{};
    Nanoseconds last{0};
    for (const MemoryCurve::Point& point : curve.points) {
      require(point.allocated >= Bytes{} && point.time >= last, "memory is negative");
      most = std::max(most, point.allocated), last = point.time;
    }
    require(curve.peak >= most, "the peak is not the peak");
  }
  if (!replayed) return;
  for (const AllocatorRun& run : replay_allocator(graph, timeline))
    require(run.peaks.reserved >= run.peaks.active, "more is in use than reserved");
}

void check(const Graph& graph, bool cycles, bool replayed) {
  Timeline timeline;
  try {
    timeline = simulate(graph);
  } catch (const Error& error) {
    require(cycles, error.what());
    return;
  }
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) check_line(graph, timeline, LaneId{i});
  graph.each_dependency([&](const Dependency& wait) { check_wait(graph, timeline, wait); });
  check_memory(graph, timeline, replayed);
  step_times(graph, timeline);
  const Breakdown parts = breakdown(graph, timeline);
  const Nanoseconds least =
      std::min({parts.compute, parts.communication, parts.copy, parts.input, parts.host});
  require(least >= 0ns, "a part of the step is negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<RealRecording>& all = recordings();
  Supply supply(data, size);
  const RealRecording& recording = all[supply.next() % all.size()];
  const bool replayed = supply.below(4) == 0;
  asked.clear();
  Graph graph = recording.graph.clone();
  bool cycles = false;
  for (std::uint32_t i = 1 + supply.below(4); i > 0 && graph.task_count() < kMaxTasks; --i) {
    std::optional<DrawnTransform> drawn;
    try {
      drawn = drawn_transform(supply, recording.words);
    } catch (const Error&) {
      continue;
    }
    const Graph& donor = all[supply.next() % all.size()].graph;
    cycles = cycles || may_make_a_cycle(drawn->name);
    if (!apply_one(std::move(*drawn), donor, graph)) return 0;
  }
  check(graph, cycles, replayed);
  return 0;
}
