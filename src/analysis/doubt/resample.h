#pragma once

// Step times of a what-if if steps had done the work of other steps of the recording: in each
// resample every step takes over the work of a step drawn at random, task by task, and the changed
// graph is replayed with it.
//
//     recorded   load 10 -> step 2 had 14           what-if   load 5 (halved) -> 5 x 14/10 = 7
//
// A task that the what-if made faster is faster in proportion, whichever step its work is drawn
// from. A task that it made longer is longer in proportion up to twice its work; beyond that a
// stall is added as recorded, because a stall lasts as long whatever else the thread does. Tasks
// that the what-if added do not vary.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/doubt/step_variation.h"
#include "foretrace/graph.h"
#include "simulate/joint_rows.h"

namespace foretrace {

struct ResampleSettings {
  std::uint64_t seed = 1;
  std::size_t resamples = 200;  ///< Fewer if the graph is large; see Resampled.
  /// Numbers of steps treated as unknown: their work is not drawn and their times are not used.
  std::vector<std::size_t> leave_out = {};
};

struct Resampled {
  std::vector<Nanoseconds>
      times;              ///< Times of the steady steps of all resamples, one after the other.
  std::size_t steps = 0;  ///< Number of times in each resample.
  std::size_t resamples = 0;
  std::size_t donors = 0;  ///< Number of steps that work was drawn from.
};

/// A rank whose work is drawn.
struct ResampledRank {
  const StepVariation& variation;
  /// The graph that the variation belongs to, and an edited clone of it: tasks have kept their ids.
  const Graph& recorded;
  const Graph& changed;
  /// Time that each recorded task waited for other ranks; empty if none did.
  std::span<const Nanoseconds> waits = {};
};

/// The steps that every rank can draw, in order; none if the ranks have different numbers of steps.
std::vector<std::size_t> common_donors(std::span<const ResampledRank> ranks, std::size_t shown);

/// Resamples ranks that wait for each other: all draw the same step, so that a rank that is late in
/// it is late for all. `rows` are those of the changed graphs, rank by rank; the times are those of
/// the rank `shown`. `times` is empty if fewer than two steps are left that all ranks can draw.
Resampled resample(std::span<const ResampledRank> ranks, std::size_t shown, const JointRows& rows,
                   const ResampleSettings& settings);

/// Resamples a rank by itself. `recorded` is the graph that the variation belongs to, and `changed`
/// an edited clone of it: tasks have kept their ids. REQUIRES: all lanes are FIFO. `times` is empty
/// if fewer than two steps are left to draw from.
Resampled resample(const StepVariation& variation, const Graph& recorded, const Graph& changed,
                   const ResampleSettings& settings);

/// Moves all times around `point`: each keeps its distance from the typical time of its step. The
/// effect of a step's position is not variation, because steps soon after the start of a recording
/// have not reached the pace of a what-if yet.
std::vector<Nanoseconds> recentered(const Resampled& found, Nanoseconds point);

}  // namespace foretrace
