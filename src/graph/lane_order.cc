// Tasks in line: inserting, moving and removing them.

#include "foretrace/error.h"
#include "foretrace/graph.h"

namespace foretrace {

TaskId Graph::Storage::add_task(LaneId lane, const Task& task) {
  CHECK(index(lane) < lanes.size());
  CHECK(tasks.size() < index(kNoTask));
  tasks.push_back(task);
  task_links.emplace_back().lane_and_removed = index(lane);
  return TaskId{static_cast<std::uint32_t>(tasks.size() - 1)};
}

void Graph::Storage::put_behind(TaskId task, TaskId front, LaneId lane) {
  TaskLinks& links = links_of(task);
  links.lane_and_removed = index(lane);
  if (front == kNoTask) tasks[index(task)].tail = {};
  TaskId& from_front = front == kNoTask ? ends_of(lane).first : links_of(front).next;
  links.previous = front;
  links.next = from_front;
  if (from_front != kNoTask) tasks[index(from_front)].tail = {};
  TaskId& from_behind = from_front == kNoTask ? ends_of(lane).last : links_of(from_front).previous;
  from_front = task;
  from_behind = task;
}

void Graph::Storage::take_out(TaskId task) {
  TaskLinks& links = links_of(task);
  LaneEnds& ends = ends_of(links.lane());
  tasks[index(task)].tail = {};
  if (links.next != kNoTask) tasks[index(links.next)].tail = {};
  (links.previous == kNoTask ? ends.first : links_of(links.previous).next) = links.next;
  (links.next == kNoTask ? ends.last : links_of(links.next).previous) = links.previous;
  links.previous = links.next = kNoTask;
}

TaskId Graph::append(LaneId lane, const Task& task) {
  const TaskId added = storage_.add_task(lane, task);
  storage_.put_behind(added, storage_.ends_of(lane).last, lane);
  return added;
}

TaskId Graph::insert_before(TaskId task, const Task& inserted) {
  CHECK(!removed(task));
  const TaskId added = storage_.add_task(lane_of(task), inserted);
  storage_.put_behind(added, previous(task), lane_of(task));
  return added;
}

TaskId Graph::insert_behind(TaskId task, const Task& inserted) {
  CHECK(!removed(task));
  const TaskId added = storage_.add_task(lane_of(task), inserted);
  storage_.put_behind(added, task, lane_of(task));
  return added;
}

void Graph::move_to_end(TaskId task, LaneId lane) {
  CHECK(!removed(task));
  storage_.take_out(task);
  storage_.put_behind(task, storage_.ends_of(lane).last, lane);
}

void Graph::move_behind(TaskId task, TaskId target) {
  CHECK(!removed(task) && !removed(target));
  if (task == target) return;
  storage_.take_out(task);
  storage_.put_behind(task, target, lane_of(target));
}

void Graph::move_before(TaskId task, TaskId target) {
  CHECK(!removed(task) && !removed(target));
  if (task == target) return;
  storage_.take_out(task);
  storage_.put_behind(task, previous(target), lane_of(target));
}

void Graph::Storage::clear_inherited_gap(TaskId task) {
  const std::uint32_t last = links_of(task).last_wait;
  if (last == kNothing) return;
  std::uint32_t at = last;
  do {
    at = dependencies[at].next_wait;
    Dependency& wait = dependencies[at].dependency;
    if (wait.why == Rule::in_line && links_of(wait.before).removed()) wait.lag = 0ns;
  } while (at != last);
}

void Graph::remove(TaskId task) {
  if (removed(task)) return;
  Storage& graph = storage_;
  const TaskId front = previous(task);
  const TaskId behind = next(task);
  const bool waits_for_others = graph.links_of(task).last_wait != kNothing;
  graph.take_out(task);
  graph.links_of(task).lane_and_removed |= TaskLinks::kRemoved;
  graph.tasks[index(task)].duration = graph.tasks[index(task)].gap = Nanoseconds(0);
  if (lane(lane_of(task)).discipline != Discipline::fifo) return;

  // A removed task keeps its place in the order through dependencies: it waits for its predecessor,
  // and its successor waits for it, whatever is removed around them. At most two dependencies are
  // added each time, so a chain of removed tasks stays linear.
  graph.clear_inherited_gap(task);
  if (front != kNoTask) add({.before = front, .after = task, .why = Rule::in_line});
  if (behind == kNoTask) return;
  const Nanoseconds gap = graph.tasks[index(behind)].gap;
  const bool implied = !waits_for_others && (front != kNoTask || gap == 0ns);
  if (implied) return;
  add({.before = task, .after = behind, .lag = gap, .why = Rule::in_line});
}

Nanoseconds tail_in_front(const Graph& graph, TaskId task) {
  const TaskId front = graph.previous(task);
  return front == kNoTask ? 0ns : graph.task(task).tail.of(graph.task(front).duration);
}

}  // namespace foretrace
