#pragma once

// An answer about a job of several ranks, each predicted alone, shows one of them. These functions
// add to it what the other ranks contribute.

#include <cstdint>
#include <vector>

#include "foretrace/ask/predict.h"

namespace foretrace {

/// The greatest level the allocator's own records tell of; nothing where they do not.
void add_recorded_reserved(const Trace& trace, std::vector<MemoryPeak>& peaks);

/// Adds what was odd about the recordings of ranks other than the one that is shown.
void add_warnings(const std::vector<Trace>& traces, std::size_t shown, Notes& notes);

/// The one of several ranks that decides whether the job fits.
class Fullest {
 public:
  void consider(std::int32_t rank, const Prediction& prediction);
  /// Puts its peaks into the answer, if they are greater, with a note.
  void take(Prediction& answer) const;

 private:
  std::int32_t rank_ = 0;
  std::vector<MemoryPeak> now_, predicted_;
};

/// A reason to trust the answer less: ranks do not wait for each other's changes.
TrustReason ranks_alone(std::size_t count);

/// Copies what a prediction says of the job as recorded, and compares `to` with it: the slowest
/// rank of a what-if may not be the one that was the slowest when recorded.
void take_recorded(const Prediction& from, Prediction& to);

}  // namespace foretrace
