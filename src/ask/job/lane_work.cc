#include "ask/job/lane_work.h"

#include <fmt/core.h>

#include "timeline/step_marks.h"

namespace foretrace {

void note_overfull_lanes(const Graph& graph, const Timeline& timeline, Notes& notes) {
  std::vector<LaneId> lanes;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    if (graph.lane(LaneId{i}).discipline == Discipline::priority) lanes.push_back(LaneId{i});
  }
  if (lanes.empty()) return;
  const std::vector<StepMark> marks = step_marks(graph, timeline);
  if (marks.size() < 3) return;
  const Nanoseconds from = marks[1].time, to = marks.back().time;
  for (const LaneId id : lanes) {
    const Nanoseconds work = work_in(graph, id, steps_between(marks));
    if (work <= room_between(from, to)) continue;
    notes.add(
        Severity::warning,
        "a lane has more work in its steps than they are long: the step time leaves some out",
        fmt::format("\"{}\": {} in {}", graph.lane(id).name, to_text(work), to_text(to - from)));
  }
}

}  // namespace foretrace
