#pragma once

// The replayed layouts of a search, and the test for which others may still be worth a replay.

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.h"
#include "plan/search.h"

namespace foretrace {

/// A bound and the values derived from it.
struct Bound : LayoutBound {
  double cost = 0;
  std::uint8_t programs = 0;  ///< One bit for each of PlanSpace::programs that can run it.
};

struct ReplayedLayout {
  std::size_t candidate = 0;  ///< Index of its candidate.
  double us = 0, cost = 0;
  std::int64_t reserved = 0;
  std::uint8_t programs = 0;
};

class Ranking {
 public:
  Ranking(std::size_t shown, std::size_t programs) : shown_(shown), launched_(programs) {}

  void add(const ReplayedLayout& layout);
  /// Returns whether `candidate` may be one of the fastest, in the front, or the
  /// fastest of a program.
  bool may_show(std::size_t candidate, const Bound& bound) const;

  std::size_t size() const { return replayed_.size(); }
  /// At most as many as are shown, fastest first.
  const std::vector<ReplayedLayout>& fastest() const { return fastest_; }
  /// The fastest layout that each of PlanSpace::programs can run.
  const std::vector<std::optional<ReplayedLayout>>& launched() const { return launched_; }
  /// Returns the layouts that no other beats in time, memory and price; the first among equal ones.
  std::vector<ReplayedLayout> front() const;

 private:
  std::size_t shown_;
  std::vector<ReplayedLayout> replayed_, fastest_;
  std::vector<std::optional<ReplayedLayout>> launched_;
  std::vector<ReplayedLayout> efficient_;  ///< The entries of `replayed_` that no other beats.
};

}  // namespace foretrace
