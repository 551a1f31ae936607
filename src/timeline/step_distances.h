#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "foretrace/timeline.h"
#include "timeline/step_marks.h"

namespace foretrace {

/// Whether steps are marked by device work: if at least half of them have some, the others do not
/// count.
inline bool marked_by_device(std::size_t with_device, std::size_t with_tasks) {
  return with_device > 0 && 2 * with_device >= with_tasks;
}

/// Where one of few steps begins that are marked by device work: with the host's work for it, or
/// behind the backlog of the device, whichever is later.
///
///     cpu      |--load--L |--load-------L |       a step's loading belongs to that step
///     stream   (backlog)   AAA             BBB
///
/// The distances of many steps may begin with their first `activity` instead, because each of their
/// leads counts once in either way; of few steps the last would take a lead twice, or no lead. It
/// is wrong for a host that prepares the next step ahead of its range: that counts for the step
/// before.
inline Nanoseconds begin_of_step(Nanoseconds activity, Nanoseconds host, Nanoseconds backlog) {
  return std::min(activity, std::max(host, backlog));
}

/// The end of the last of few steps, and the begins of the first and the last on the host.
struct StepEnd {
  Nanoseconds work = Nanoseconds::min();  ///< The end of its device work.
  Nanoseconds host = Nanoseconds::min();  ///< The end of its work on the launching threads.
  Nanoseconds host_begin = Nanoseconds::max(), first_host_begin = Nanoseconds::max();
  Nanoseconds waited{0};  ///< How long these threads wait for the device in the last step.

  /// The length of the last step, given where the first and the last begin. The next step could
  /// begin when the device has finished this one, and no sooner than the host works for a step;
  /// then this one takes the host's lead into it in place of that into the first step, if that was
  /// as long, so that all steps fit into the recording.
  Nanoseconds length(Nanoseconds first, Nanoseconds last) const {
    const Nanoseconds rest = std::max({work, host, last}) - last;
    if (host_begin > last) return rest;
    const Nanoseconds lead = std::max(first - std::min(first, first_host_begin), Nanoseconds(0));
    return std::clamp(host - host_begin - waited, rest, rest + lead);
  }

  /// How long the launching threads take for all steps; 0 if none is known.
  Nanoseconds host_span() const {
    return host < first_host_begin ? Nanoseconds(0) : host - first_host_begin;
  }
};

/// Whether the tasks of a lane can mark steps alone.
bool can_mark_steps(const Lane& lane);
/// Returns the first task of a step in the line of `lane`, on the device or on the host, or
/// kNoTask. Linear in the tasks of the lane, like the next three.
TaskId first_of_step(const Graph& graph, LaneId lane, std::int32_t step, bool on_device);
/// Returns the task in front of the step's device work on `lane`, or kNoTask.
TaskId in_front_of_step(const Graph& graph, LaneId lane, std::int32_t step);
/// Returns the first task of the step's device work on `lane` if it is held at its recorded start,
/// because the device was busy with work that was not recorded; else kNoTask.
TaskId pinned_begin(const Graph& graph, LaneId lane, std::int32_t step);
/// Returns the tasks of a step on a thread's `lane` that wait for the device, each behind the task
/// of the step that is in front of it in line.
std::vector<std::pair<TaskId, TaskId>> waits_for_device(const Graph& graph, LaneId lane,
                                                        std::int32_t step);
/// Returns in how many steps `lane` has device work.
std::size_t device_steps_on(const Graph& graph, LaneId lane);

/// Returns the number of leading distances that do not count.
std::size_t first_counted(const StepRule& rule, std::size_t distances);

/// Step times of a graph without steps: its length.
StepTimes times_without_steps(const StepRule& rule, Nanoseconds length);

/// The length of the last step, if it counts, and how long the launching threads take for all.
struct LastStep {
  Nanoseconds length{0}, host_span{0};
};

/// Returns the distances between marks and their summary. REQUIRES: at least one mark.
///
/// The median of a few unequal steps flips from one step to another when work is scaled. So the
/// step time of few steps is their mean times the recorded ratio of median to mean, but no less
/// than the fastest and no more than the slowest step. If the device is faster than the host and
/// works off what was launched before, the steps look shorter than they can be in the long run:
/// they take no less than the host takes for them, as far as that was hidden in the recording.
StepTimes times_between(const StepRule& rule, std::span<const Nanoseconds> marks,
                        const LastStep& last);

}  // namespace foretrace
