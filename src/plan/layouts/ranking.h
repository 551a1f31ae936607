#pragma once

// The replayed layouts of a search, and which others may still be worth a replay.

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.h"
#include "plan/search.h"

namespace foretrace {

/// A bound with what follows from it.
struct Bound : LayoutBound {
  double cost = 0;
  std::uint8_t programs = 0;  ///< A bit for each of launch_programs() that runs it.
};

struct Replayed {
  std::size_t place = 0;  ///< Of its candidate.
  double us = 0, cost = 0;
  std::int64_t reserved = 0;
  std::uint8_t programs = 0;
};

class Ranking {
 public:
  explicit Ranking(std::size_t shown) : shown_(shown) {}

  void add(const Replayed& one);
  /// Whether the candidate at `place` may be one of the fastest, in the front or the fastest of a
  /// program.
  bool may_show(std::size_t place, const Bound& bound) const;

  std::size_t size() const { return replayed_.size(); }
  /// At most so many as are shown, fastest first.
  const std::vector<Replayed>& fastest() const { return fastest_; }
  /// By launch_programs(): the fastest that each runs.
  const std::vector<std::optional<Replayed>>& launched() const { return launched_; }
  /// None is better in time, memory and price; among equal ones the first.
  std::vector<Replayed> front() const;

 private:
  std::size_t shown_;
  std::vector<Replayed> replayed_, fastest_;
  std::vector<std::optional<Replayed>> launched_{launch_programs().size()};
  std::vector<Replayed> efficient_;  ///< Of `replayed_`, those that nothing is better than.
};

}  // namespace foretrace
