#pragma once

// The search behind plan_layouts(), in two steps: the bounds of all layouts, which take nearly all
// of its time, and the replays of those that may win.
//
//     layouts --blocks--> bounds --replays--> outcome
//
// Bounds of a layout depend on no other layout. So blocks may be kept, found in any order and by
// several machines, and the outcome is the same. Costs of GPUs and how many layouts are shown have
// no part in them.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace foretrace {

/// Names of settings: what layouts of a space differ in, unless it is fixed.
const std::vector<std::string>& searched_settings();

/// The price of a layout with no more bubbles than it must have.
struct LayoutBound {
  double us = 0;
  PriceParts parts{};
  std::int64_t reserved = 0;           ///< Bytes of the fullest device.
  bool is_served = true, fits = true;  ///< The schedule serves the layout; it fits a device. There
                                       ///< are no times where it does not.
};

class PlanSearch {
 public:
  /// Throws Error if there are no layouts. REQUIRES: both outlive it.
  PlanSearch(const PlanSpace& space, const StepCalibration& calibration);
  PlanSearch(PlanSearch&&) noexcept;
  ~PlanSearch();

  std::size_t blocks() const;
  /// Layouts of a block, in the order of all_layouts().
  std::size_t layouts(std::size_t block) const;
  /// As find() would; REQUIRES: as many as the block has layouts.
  void set(std::size_t block, const std::vector<LayoutBound>& bounds);

  /// Finds the bounds of the blocks from `first` up to but not including `end`, or until `stop`.
  /// `found` is called with those of a block, in order, by one thread at a time.
  using Found = std::function<void(std::size_t block, const std::vector<LayoutBound>& bounds)>;
  void find(std::size_t first, std::size_t end, const Found& found, const std::atomic<bool>& stop);

  /// As plan_layouts(). REQUIRES: the bounds of all blocks are known.
  PlanOutcome outcome();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
