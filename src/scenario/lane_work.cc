#include "scenario/lane_work.h"

#include "foretrace/step_marks.h"

namespace foretrace {
namespace {

/// Of the tasks of the steps from `first` up to `end`.
Nanoseconds work_of_steps(const Graph& graph, LaneId lane, std::int32_t first, std::int32_t end) {
  Nanoseconds work{0};
  for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
    const std::int32_t step = graph.task(task).step;
    if (step >= first && step < end) work += graph.task(task).duration;
  }
  return work;
}

}  // namespace

void note_overfull_lanes(const Graph& graph, const Timeline& timeline, Notes& notes) {
  const std::vector<Mark> marks = step_marks(graph, timeline);
  if (marks.size() < 3) return;
  const Nanoseconds span = marks.back().time - marks[1].time;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const LaneId id{i};
    if (graph.lane(id).discipline != Discipline::priority) continue;
    const Nanoseconds work = work_of_steps(graph, id, marks[1].step, marks.back().step);
    if (work <= span + span / 20) continue;
    notes.add(Severity::warning,
              "a lane has more work in its steps than they are long: the step time leaves some out",
              "\"" + graph.lane(id).name + "\": " + to_text(work) + " in " + to_text(span));
  }
}

}  // namespace foretrace
