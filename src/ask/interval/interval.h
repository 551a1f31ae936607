#pragma once

// How far a prediction may be off, and why: between the tenth and the ninetieth of a hundred draws
// of
//
//     point + variation + rest
//
//     variation   by how much a step differs from one resample to another (see resample.h), widened
//                 as Student's distribution is, for it comes from few recorded steps
//     model       what this kind of what-if was off by (see ledger.h), at most what it touched
//     inferred    somewhere between waits that were inferred being there and not being there
//     unexplained somewhere between delays without a cause staying as they are and scaling with the
//                 rest
//     replay      the error of the unmodified replay, either way
//
// So four of five steps of the changed job are expected in it. It ignores what no source tells of:
// another day, another machine.

#include <string>
#include <vector>

#include "ask/interval/ledger.h"
#include "foretrace/answer/interval_level.h"
#include "foretrace/answer/prediction.h"

namespace foretrace {

/// Something else that could be true, and the step time if it is.
struct Bracket {
  std::string source;
  Nanoseconds other{0};
  std::string text;
};

struct IntervalInputs {
  Nanoseconds point{0};
  /// Step times that were seen, or replayed: draws of what a step may take.
  std::vector<Nanoseconds> times = {};
  std::size_t seen = 0;       ///< Recorded steps behind `times`; fewer than two: nothing is known.
  std::size_t resamples = 0;  ///< Replays behind `times`; 0: scaled from the recording.
  std::string why_not = {};   ///< Why there were no replays, where there is more to say.
  std::vector<ErrorScale> models = {};  ///< Of the kinds of what-if.
  Nanoseconds touched{0};               ///< No what-if is further off than this.
  std::vector<Bracket> brackets = {};
  double replay_error = 0;
};

struct Interval {
  Nanoseconds lower{0}, upper{0};
  std::vector<IntervalPart> parts;
  std::string source;  ///< All parts in words.
};

/// The point is always inside.
Interval interval_of(const IntervalInputs& inputs);

}  // namespace foretrace
