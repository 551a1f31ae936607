#pragma once

// The work of a recording by steps: for each step the tasks on each lane in order, with keys that
// identify a task across steps and recordings.

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/infer.h"
#include "foretrace/names.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// Kind of lane, device, and index among the lanes of that kind and device, because names of
/// threads differ between runs.
using LaneKey = std::tuple<LaneKind, std::int32_t, std::size_t>;

struct StepLine {
  std::vector<TaskId> tasks;
  std::vector<std::uint64_t> keys;  ///< Kind and name.
  std::vector<Nanoseconds> durations;
  std::vector<char> launched;  ///< Whether each task runs on a device, or launches work.
};

class StepWork {
 public:
  /// `names` is shared by the recordings that are compared. `waits` is, by task, the part of its
  /// time that was waiting and is no work; empty if there was none.
  StepWork(const Inference& inference, Names& names, std::span<const Nanoseconds> waits = {});

  /// Steps that have tasks, in order; they correspond to the marks behind StepTimes::each.
  std::size_t count() const { return lines_.size(); }
  const std::map<LaneKey, StepLine>& lines(std::size_t step) const { return lines_[step]; }
  /// Host work before the first launch of the step; empty if the step launches nothing.
  std::map<LaneKey, StepLine> head(std::size_t step) const;

 private:
  const Inference& inference_;
  std::vector<std::map<LaneKey, StepLine>> lines_;
  /// Start of the first launch of each step; Nanoseconds::min() if it launches nothing.
  std::vector<Nanoseconds> first_launch_;
};

/// Adds a warning if a lane with priorities has more work in its steps than they are long. A lane
/// that runs one task at a time cannot do so. On a FIFO lane that is guaranteed, because steps
/// follow the fullest stream (see StepTimes); on a lane with priorities, work may run in another
/// step than the one it belongs to, and the step time then leaves it out. Linear.
void note_overfull_lanes(const Graph& graph, const Timeline& timeline, Notes& notes);

}  // namespace foretrace
