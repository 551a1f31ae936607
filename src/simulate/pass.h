#pragma once

// The replay without a clock. If every lane runs its tasks in order, the rows of a graph stand in a
// topological order, so one pass computes all times.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulate/rows.h"

namespace foretrace {

/// Passes once over all rows; each task starts at the latest time that its waits allow. Fills
/// `finish`; returns the greatest finish.
Nanoseconds pass(const Rows& rows, std::span<Nanoseconds> finish);

/// Passes over the rows from `begin` up to, but not including, `end`; none starts before
/// `earliest`.
Nanoseconds pass(const Rows& rows, std::span<Nanoseconds> finish, std::uint32_t begin,
                 std::uint32_t end, Nanoseconds earliest);

constexpr std::size_t kSetsAtOnce = 8;

/// A task whose times are requested.
struct Probe {
  std::uint32_t task = 0;   ///< Its row.
  std::uint32_t place = 0;  ///< Index of its times within a set.
};

/// Returns the probes of `tasks`, in order of their rows; `row_of` has the row of each task.
std::vector<Probe> probes_by_row(std::span<const TaskId> tasks,
                                 std::span<const std::uint32_t> row_of);

/// Times of the probes in eight replays: all times of the first replay, then of the second, and so
/// on.
struct ProbeTimes {
  std::span<const Probe> probes;  ///< In order of their rows.
  std::span<std::int64_t> starts, finishes;
};

/// One time for each of eight replays.
using EightTimes = std::array<std::int64_t, kSetsAtOnce>;
/// Durations by row, for each of eight replays.
using EightDurations = std::array<const std::int64_t*, kSetsAtOnce>;

/// Memory for the times that a pass looks back at. Keep it for the next pass: mapping and zeroing
/// some megabytes takes longer than passing over them.
class EightScratch {
 public:
  EightScratch();
  EightScratch(EightScratch&&) noexcept;
  ~EightScratch();

 private:
  friend class EightPass;
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

/// Like pass(), but with eight sets of durations at once, and part by part. All arguments must
/// outlive it.
class EightPass {
 public:
  EightPass(const Rows& rows, const EightDurations& durations, const ProbeTimes& probe_times,
            Nanoseconds earliest, EightScratch& scratch);

  /// Passes over the rows up to, but not including, `end`.
  void run(std::size_t end);
  /// Returns when the next row could start, in each replay.
  EightTimes enter_next();
  /// Passes over the next row, which enters a collective at one time and continues at another.
  void leave_next(const EightTimes& enters, const EightTimes& goes_on);

  /// The greatest finish of each replay.
  EightTimes greatest() const { return greatest_; }

 private:
  void read_probes(std::size_t end, const EightTimes* enters);

  const Rows& rows_;
  const EightDurations& durations_;
  const ProbeTimes& probe_times_;
  std::int64_t earliest_;
  EightScratch& scratch_;
  std::uint32_t mask_;
  std::size_t next_ = 0, probe_ = 0;
  EightTimes greatest_{};
};

}  // namespace foretrace
