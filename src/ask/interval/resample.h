#pragma once

// Step times of a what-if had other steps of the recording brought their work: in each resample
// every step takes over the work of a step drawn at random, task by task, and the changed graph is
// replayed with it.
//
//     recorded   load 10 -> step 2 had 14           what-if   load 5 (halved) -> 5 x 14/10 = 7
//
// A task that the what-if made faster is faster in proportion, whichever step it is drawn from. One
// that it made longer is longer in proportion up to twice its work; beyond that a stall is added as
// it was recorded, for a thread that is held up is held up as long whatever it does. Tasks that the
// what-if put in do not vary.

#include <cstdint>
#include <optional>
#include <vector>

#include "ask/interval/step_variation.h"
#include "foretrace/graph.h"

namespace foretrace {

struct ResampleSettings {
  std::uint64_t seed = 1;
  std::size_t resamples = 200;  ///< Fewer where the graph is large; see Resampled.
  /// Number of a step whose work is not drawn and whose time is not told: as if it were not known.
  std::optional<std::size_t> leave_out = {};
};

struct Resampled {
  std::vector<Nanoseconds> times;  ///< Of the steady steps of all resamples, one after the other.
  std::size_t steps = 0;           ///< Times of each resample.
  std::size_t resamples = 0;
  std::size_t donors = 0;  ///< Steps that work was drawn from.
};

/// Others cannot be replayed many times at once.
bool all_in_line(const Graph& graph);

/// `recorded` is the graph that the variation is of, `changed` what became of a clone of it: tasks
/// have kept their ids. All lanes of it must run their tasks in line. Nothing in `times` if fewer
/// than two steps are left to draw from.
Resampled resample(const StepVariation& variation, const Graph& recorded, const Graph& changed,
                   const ResampleSettings& settings);

/// As many times around `point`: each is as far from it as it was from what is typical of its step.
/// What a step owes to its place is no variation: those behind the beginning of a recording are
/// still on their way to the pace of a what-if.
std::vector<Nanoseconds> around(const Resampled& found, Nanoseconds point);

}  // namespace foretrace
