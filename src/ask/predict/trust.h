#pragma once

// The grade of an answer, from the facts of the recording, of the replay and of the change. The one
// place where limits are set.

#include <cstdint>
#include <span>
#include <string_view>

#include "ask/job/retimed.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/ask/ledger.h"
#include "foretrace/graph.h"
#include "foretrace/infer.h"

namespace foretrace {

/// How much shorter a step of `graph` would be if time that the recording leaves open took no time.
/// By replay: a wait that is hidden behind other work does not count. `graph` is the inferred one
/// or an edited clone; the open share of a collective whose duration changed stays the same. Costs
/// two replays if any time is open, nothing otherwise.
OpenStepTime open_step_time(const Inference& inference, const Graph& graph, Nanoseconds step_time);

/// Whether any time is, as recorded. If not, an edited graph has no open time.
bool has_open_time(const Inference& inference);

/// The same for a graph whose structure was compiled before. `now`: the durations that the graph
/// has since been given.
OpenStepTime open_step_time(const Inference& inference, const Graph& graph, Nanoseconds step_time,
                            const Retiming& now, Retimed& compiled);

/// Grades a prediction whose facts are filled in. `own`: the user's ledger.
///
///     always                   replay_error, unexplained, other_ranks, pinned, steps
///     where there are steps    spread, steps_found
///     for a cut recording      cut_off
///     for each kind of what-if compared or edit
Trust trust_of(const Prediction& prediction, std::span<const KnownOutcome> own);

/// Grades a recording alone, before anything is asked of it or where nothing was. recorded: the
/// answer was measured, so time left open is worth knowing and decides nothing. changes: the answer
/// is about many changes.
enum class AnswerAbout : std::uint8_t { recorded, changes };
Trust trust_of_recording(const Prediction& baseline, AnswerAbout about);

/// The same, from a recording that nothing was predicted from; costs a replay. `notes`: of its
/// importer.
Trust trust_in_recording(const Inference& inference, const Notes& notes, AnswerAbout about);

/// The fact that a recording breaks off.
constexpr std::string_view kCutOffReason = "cut_off";

/// A recording that breaks off; the note of its importer that says so, nullptr for a whole one.
const Note* cut_off_note(const Notes& notes);

}  // namespace foretrace
