#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/contains.h"
#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "foretrace/timeline.h"
#include "timeline/covered_time.h"

namespace foretrace {
namespace {

template <class Visit>
void each_in(const Graph& graph, const Timeline& timeline, StepWindow window, const Visit& visit) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    if (graph.removed(id)) continue;
    const Nanoseconds from = std::max(timeline.start[i], window.from);
    const Nanoseconds to = std::min(timeline.finish[i], window.to);
    if (from < to) visit(id, from, to);
  }
}

/// Times of loading, or of copies. Where several overlap, only the first counts.
class StallTimes {
 public:
  void add(InputStalls::StallTime& part, Nanoseconds from, Nanoseconds to) {
    times_.push_back({from, to, &part});
  }
  /// Adds up what `hides` covers and what it does not.
  void sum_up(const CoveredTime& hides) {
    std::stable_sort(times_.begin(), times_.end(),
                     [](const Time& a, const Time& b) { return a.from < b.from; });
    Nanoseconds until = Nanoseconds::min();
    for (const auto& [begin, to, part] : times_) {
      const Nanoseconds from = std::max(begin, until);
      if (from >= to) continue;
      const Nanoseconds hidden = hides.within(from, to);
      part->stall += to - from - hidden;
      part->hidden += hidden;
      until = to;
    }
  }

 private:
  struct Time {
    Nanoseconds from, to;
    InputStalls::StallTime* part;
  };
  std::vector<Time> times_;
};

}  // namespace

Loading loading_named(std::string_view name) {
  const std::string lower = lower_case(name);
  if (contains_any(lower, {"_multiprocessingdataloaderiter", "multiprocessing/", "queue",
                           "selectors", "poll", "select.select", "threading.py"}))
    return Loading::waiting;
  if (contains_any(lower, {"read_file", "readinto", "fread", "pread", "io.open", "_io.", "recv",
                           "socket", "method read", ": read", ".read", "builtins.open"}))
    return Loading::reading;
  if (contains_any(lower, {"aten::", "decode", "transforms", "pil/", "image", "cv2", "numpy",
                           "resize", "collate", "tokeniz"}))
    return Loading::preparing;
  return Loading::unknown;
}

InputStalls input_stalls(const Graph& graph, const Timeline& timeline) {
  InputStalls stalls;
  const StepWindow window = step_window(graph, timeline);
  CoveredTime device, work;
  each_in(graph, timeline, window, [&](TaskId id, Nanoseconds from, Nanoseconds to) {
    const TaskKind kind = graph.task(id).kind;
    if (!runs_on_device(kind)) return;
    device.add(from, to);
    if (kind != TaskKind::copy_in) work.add(from, to);
  });
  device.finish();
  work.finish();
  StallTimes loads, copies;
  TaskId before = kNoTask;
  each_in(graph, timeline, window, [&](TaskId id, Nanoseconds from, Nanoseconds to) {
    const Task& task = graph.task(id);
    if (task.kind == TaskKind::copy_in) {
      copies.add(stalls.copying, from, to);
      stalls.copied += task.bytes;
      if (contains(graph.name(id), "Pageable")) ++stalls.pageable;
      if (contains(graph.name(id), "Pinned")) ++stalls.pinned;
    }
    const bool in_background = graph.lane(graph.lane_of(id)).kind != LaneKind::host_thread;
    if (task.kind != TaskKind::input || in_background) return;
    // Consecutive loading tasks form one batch.
    if (before == kNoTask || graph.previous(id) != before) ++stalls.batches;
    before = id;
    const std::array parts = {&stalls.unknown, &stalls.reading, &stalls.preparing, &stalls.waiting};
    const auto kind = static_cast<std::size_t>(loading_named(graph.name(id)));
    loads.add(*parts[kind], from, to);
  });
  copies.sum_up(work);
  loads.sum_up(device);
  stalls.steps = window.steps;
  stalls.step = window.times.step_time;
  // The steps in the window may be longer or shorter than the typical step.
  const double typical = ratio(stalls.step, stalls.steps * window.times.mean);
  for (InputStalls::StallTime* part :
       {&stalls.reading, &stalls.preparing, &stalls.waiting, &stalls.unknown, &stalls.copying}) {
    part->stall = scaled(part->stall, typical);
    part->hidden = scaled(part->hidden, typical);
  }
  stalls.copied.count /= stalls.steps;
  return stalls;
}

}  // namespace foretrace
