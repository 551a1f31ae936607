#pragma once

// Relations that must hold for any graph, whatever it was made from.

#include "foretrace/ask/predict.h"
#include "foretrace/infer.h"

namespace foretrace {

/// Whether everything takes exactly twice as long if all durations, gaps and lags are doubled.
bool doubling_holds(const Graph& graph, const Timeline& replayed);
/// Whether a transform by factor 1 changes no time.
bool neutral_holds(const Graph& graph, const Timeline& replayed);
/// Whether the end never comes later if one task takes no time; tried for all tasks of a small
/// graph, and for a seeded sample of a large one.
bool shrinking_holds(const Graph& graph, const Timeline& replayed);
/// The step times after writing the timeline as Kineto JSON, reading and inferring it again, and
/// replaying.
StepTimes exported_step_times(const Graph& graph, const Timeline& replayed);

}  // namespace foretrace
