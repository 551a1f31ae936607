#pragma once

// The grade of an answer, from the facts of the recording, of the replay and of the change. All
// limits of grades are set here.

#include <cstdint>
#include <span>
#include <string_view>

#include "foretrace/answer/prediction.h"
#include "foretrace/graph.h"
#include "foretrace/infer.h"
#include "foretrace/ledger.h"
#include "job/retimed_replay.h"

namespace foretrace {

/// How much shorter a step of `graph` would be if open time of the recording took no time. It is
/// found by replay, so a wait that is hidden behind other work does not count. `graph` is the
/// inferred one or an edited clone; the open share of a collective whose duration changed stays the
/// same. Costs two replays if there is open time, nothing otherwise.
OpenStepTime open_step_time(const Inference& inference, const Graph& graph, Nanoseconds step_time);
/// How much shorter a recorded step would be without waits for other ranks: those that are open
/// time of the recording, and `further` ones. Costs a replay if there are any.
Nanoseconds wait_for_ranks(const Inference& inference, const std::vector<OpenTime>& further,
                           Nanoseconds step_time);

/// Sets the open time of the unmodified replay, whose step time `run` has, and what remains of the
/// recording without host and without device. Costs up to four replays.
void examine_baseline(const Inference& inference, RecordedRun& run);

/// Whether the recording has open time. If not, an edited graph has none either.
bool has_open_time(const Inference& inference);

/// Like open_step_time(), for a graph that was compiled before. `now` has the durations that the
/// graph was given since.
OpenStepTime open_step_time(const Inference& inference, const Graph& graph, Nanoseconds step_time,
                            const Retiming& now, RetimedReplay& compiled);

/// Grades a prediction whose facts are filled in. `user_outcomes` are those of the user's ledger.
///
///     always                   replay_error, unexplained, other_ranks, pinned, steps
///     if there are steps       spread, steps_found
///     for a cut recording      cut_off
///     where they do not hold   without_device, without_host
///     where it is much         profiler; unknown_use, of memory
///     where it does not fit    memory, unless a limit was asked about
///     where a replay breaks    below_bound, paces
///     what a recording lacks   each Shortcoming that infer() found
///     for each step            applies, where that is not to all of its work; doubt, for each of
///                              AppliedStep::doubts; once, for host work gone from a single step
///     for each kind of what-if compared or edit
Trust trust_of(const Prediction& prediction, std::span<const KnownOutcome> user_outcomes);

/// Whether an answer is measured, so that open time is worth a note but decides nothing, or is
/// about changes.
enum class AnswerAbout : std::uint8_t { recorded, changes };
/// Grades a recording alone, from the baseline of a question or before one is asked.
Trust trust_of_recording(const Prediction& baseline, AnswerAbout about);

/// Grades a recording from which nothing was predicted; costs a replay. `notes` are those of its
/// importer.
Trust trust_in_recording(const Inference& inference, const Notes& notes, AnswerAbout about);

/// The reason given for a recording that breaks off, by name.
constexpr std::string_view kCutOffReason = "cut_off";

/// The importer's note that a recording breaks off; nullptr if it is complete.
const Note* cut_off_note(const Notes& notes);

}  // namespace foretrace
