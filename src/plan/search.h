#pragma once

// The search behind plan_layouts(), in two steps: the bounds of all layouts, which take nearly all
// of the time, and the replays of the layouts that may win.
//
//     layouts --blocks--> bounds --replays--> outcome
//
// The bound of a layout depends on no other layout. Blocks may therefore be stored, and computed in
// any order and by several machines, with the same outcome. GPU prices and the number of layouts
// shown do not affect the bounds.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace foretrace {

/// Names of the settings in which the layouts of a space differ, unless they are fixed.
const std::vector<std::string>& searched_settings();

/// The price of a layout whose pipeline has only the unavoidable bubbles.
struct LayoutBound {
  double us = 0;
  PriceParts parts{};
  std::int64_t reserved = 0;           ///< Bytes of the fullest device.
  bool is_served = true, fits = true;  ///< The schedule serves the layout; it fits a device. There
                                       ///< are no times where it does not.
};

class PlanSearch {
 public:
  /// Throws Error if there are no layouts. REQUIRES: both arguments outlive this.
  PlanSearch(const PlanSpace& space, const StepCalibration& calibration);
  PlanSearch(PlanSearch&&) noexcept;
  ~PlanSearch();

  std::size_t blocks() const;
  /// Returns the number of layouts in a block; blocks follow the order of all_layouts().
  std::size_t layouts(std::size_t block) const;
  /// Sets the bounds of a block, as find() would. REQUIRES: one bound per layout of the block.
  void set(std::size_t block, const std::vector<LayoutBound>& bounds);

  /// Computes the bounds of the blocks from `first` up to but not including `end`, or until `stop`
  /// is set. Calls `on_block` for each block in order, from one thread at a time.
  using OnBlock = std::function<void(std::size_t block, const std::vector<LayoutBound>& bounds)>;
  void find(std::size_t first, std::size_t end, const OnBlock& on_block,
            const std::atomic<bool>& stop);

  /// Returns the same as plan_layouts(). REQUIRES: the bounds of all blocks are known.
  PlanOutcome outcome();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
