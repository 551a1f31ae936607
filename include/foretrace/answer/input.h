#pragma once

// The answer of `foretrace input`: how much of a step waits for input, and how many workers and how
// much cache would end that. With one trace, this comes from its records; with two or three traces
// of the same job, from the differences of DS-Analyzer (Mohan et al., VLDB'21):
//
//     t1  synthetic batches on the device    G = samples / t1
//     t2  all data cached                    P = samples / t2     prep stall   t2 - t1
//     t3  the job as it is                   F = samples / t3     fetch stall  t3 - t2
//
//     speed(x) = min(F(x), P, G),  F(x) = F m(x0) / m(x)
//
// where m(x) is the share of misses with a share x of the data cached, x0 as recorded. F and P are
// the rates reached: lower bounds where t3 = t2 or t2 = t1. Reading overlaps with the rest, so F is
// taken from all of t3; the authors' script takes samples / (t3 - t2), which is shown beside it.

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "foretrace/answer/advice.h"
#include "foretrace/notes.h"
#include "foretrace/storage.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct InputReport {
  InputStalls stalls;
  Nanoseconds replayed{0};         ///< Step time of the trace.
  bool has_steps = true;           ///< If false, `replayed` is that of the whole recording.
  Nanoseconds without_loading{0};  ///< Step time, replayed with loading that takes no time.
  Nanoseconds without_copies{0};   ///< The same, with copies to the device that take none.
  Nanoseconds work{0};             ///< Time per step that the training thread loads.
  StepBound bound;                 ///< As advise() finds it, for this rank alone.
  /// Loader processes that would hide `work`; empty if the job has some, if `work` is below 2 % of
  /// a step, or if a step would take no less time with any number of them.
  std::optional<std::int64_t> workers;
  /// Step time with those, or at best if they would not help; 0 if they were not tried.
  Nanoseconds with_workers{0};

  std::optional<Nanoseconds> synthetic;  ///< t1
  std::optional<Nanoseconds> cached;     ///< t2
  double samples = 0;                    ///< Samples in a batch; 0: unknown, rates are in batches.
  std::int64_t recorded_workers = 0;     ///< 0: not known.
  CachedSet set;                         ///< As recorded.
  bool knows_cache = false;              ///< Whether `set.cached` is known.
  Notes notes;
};

class Document;
/// For people, in every form.
Document document_of(const InputReport& report);
/// The object with schema "foretrace.input/1".
nlohmann::json to_json(const InputReport& report);

}  // namespace foretrace
