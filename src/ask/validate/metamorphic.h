#pragma once

// Relations that must hold for any graph, whatever it was made from.

#include "foretrace/ask/predict.h"
#include "foretrace/infer.h"

namespace foretrace {

/// All durations, gaps and lags doubled: everything takes exactly twice as long.
bool doubling_holds(const Graph& graph, const Timeline& replayed);
/// A transform by factor 1 moves nothing.
bool neutral_holds(const Graph& graph, const Timeline& replayed);
/// Tasks taken to no time, one after the other: the end never comes later. All of a small graph, a
/// seeded sample of a large one.
bool shrinking_holds(const Graph& graph, const Timeline& replayed);
/// The step time after writing the timeline as Kineto JSON, reading that, inferring again and
/// replaying.
StepTimes exported_step_times(const Graph& graph, const Timeline& replayed);

}  // namespace foretrace
