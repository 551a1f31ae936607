#pragma once

// The replay without a clock: where every lane runs its tasks in line, the rows of a graph stand in
// an order in which all waits of a task are in front of it, so one pass finds all times.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulate/rows.h"

namespace foretrace {

/// One pass over the tasks in order: each starts at the latest of its waits. Fills `finish`,
/// returns the greatest.
Nanoseconds pass(const Rows& rows, std::span<Nanoseconds> finish);

/// The same of the tasks from `begin` to before `end`, none of which starts before `earliest`.
Nanoseconds pass(const Rows& rows, std::span<Nanoseconds> finish, std::uint32_t begin,
                 std::uint32_t end, Nanoseconds earliest);

constexpr std::size_t kSetsAtOnce = 8;

/// A task whose times are wanted.
struct Probe {
  std::uint32_t task = 0;   ///< Its row.
  std::uint32_t place = 0;  ///< Locates its times among those of a set.
};

/// The probes of tasks, in order of their rows; `row_of` has the row of each task.
std::vector<Probe> probes_by_row(std::span<const TaskId> tasks,
                                 std::span<const std::uint32_t> row_of);

/// Times of the probes in each of eight replays: those of the first, those of the second ...
struct ProbeTimes {
  std::span<const Probe> probes;  ///< In order of their rows.
  std::span<std::int64_t> starts, finishes;
};

/// Times in each of eight replays.
using EightTimes = std::array<std::int64_t, kSetsAtOnce>;
/// Durations in each of them, by row.
using EightDurations = std::array<const std::int64_t*, kSetsAtOnce>;

/// Memory for the times that a pass looks back at. To have some megabytes mapped and zeroed anew
/// takes longer than to pass over them: keep it for the next pass.
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

/// As pass(), with eight sets of durations at once, and part by part. Everything given must outlive
/// it.
class EightPass {
 public:
  EightPass(const Rows& rows, const EightDurations& durations, const ProbeTimes& wanted,
            Nanoseconds earliest, EightScratch& scratch);

  /// Passes over the rows up to before `end`.
  void run(std::size_t end);
  /// When the next row could start.
  EightTimes enter_next();
  /// Passes over the next row, which has entered at one time and goes on at another.
  void leave_next(const EightTimes& enters, const EightTimes& goes_on);

  /// Writes the greatest finish of each.
  EightTimes greatest() const { return greatest_; }

 private:
  void read_probes(std::size_t end, const EightTimes* enters);

  const Rows& rows_;
  const EightDurations& durations_;
  const ProbeTimes& wanted_;
  std::int64_t earliest_;
  EightScratch& scratch_;
  std::uint32_t mask_;
  std::size_t next_ = 0, probe_ = 0;
  EightTimes greatest_{};
};

}  // namespace foretrace
