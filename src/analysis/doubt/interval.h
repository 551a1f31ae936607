#pragma once

// How far a prediction may be off, and why: the range from the 10th to the 90th percentile of draws
// of
//
//     point + variation + rest
//
//     variation     the difference of a step between resamples (see resample.h), widened as
//                   Student's distribution is, because it comes from few recorded steps
//     model         the known error of this kind of what-if (see ledger.h), bounded by the
//                   changed work
//     inferred      somewhere between inferred waits being present and absent
//     unexplained   somewhere between delays without a cause staying as they are and scaling
//                   with the rest
//     lower_bound   somewhere up to the greatest time that a change names, where it knows that its
//                   own is a lower bound
//     transfers     those that nothing hides, from the 10th to the 90th percentile of measured ones
//     replay        the error of the unmodified replay, either way
//
// So four of five steps of the changed job are expected in it. It ignores influences that no source
// covers: another day, another machine.

#include <string>
#include <vector>

#include "analysis/doubt/ledger.h"
#include "foretrace/answer/interval_level.h"
#include "foretrace/answer/prediction.h"

namespace foretrace {

/// An alternative assumption, and the step time if it is true.
struct AlternativeTime {
  std::string source;
  Nanoseconds step_time{0};
  std::string text;
};

/// Transfers that nothing hides, and what is known of their times.
struct UnsureTransfers {
  Nanoseconds exposed{0};
  TransferDoubt doubt;
  std::string text;
};

struct IntervalInputs {
  Nanoseconds point{0};
  /// Observed or replayed step times: draws of the time that a step may take.
  std::vector<Nanoseconds> times = {};
  /// Recorded steps behind `times`; with fewer than two, the variation is unknown.
  std::size_t recorded_steps = 0;
  /// Steps are of several kinds and the point lies between two of them: the interval reaches from
  /// the fastest to the slowest of `times`.
  bool between_kinds = false;
  std::size_t resamples = 0;  ///< Replays behind `times`; 0 if they are scaled from the recording.
  std::string no_replay_reason = {};    ///< Why there were no replays; may be empty.
  std::vector<ErrorScale> models = {};  ///< Errors of the kinds of what-if.
  Nanoseconds changed_work{0};          ///< The error of a what-if is at most this.
  Nanoseconds least{0};                 ///< No error of a what-if leads much below this, ...
  Nanoseconds greatest{0};              ///< ... or above this; 0: unlimited.
  std::vector<AlternativeTime> alternatives = {};
  std::vector<UnsureTransfers> transfers = {};
  double replay_error = 0;
};

struct Interval {
  Nanoseconds lower{0}, upper{0};
  std::vector<IntervalPart> parts;
  std::string source;  ///< Describes all parts.
};

/// The interval always contains the point.
Interval interval_of(const IntervalInputs& inputs);

}  // namespace foretrace
