#pragma once

// Chooses the blocks to drop that save a number of bytes with the least time to compute them again.
// Work that several dropped blocks need is done once:
//
//     min  time of the union of work(b) over the dropped b      so that      sum bytes(b) >= wanted
//
// The greedy way always takes the block that saves the most bytes for the time it adds (MSPS of
// Capuchin, ASPLOS'20). The exact way is branch and bound over the blocks. Its bound is the
// fractional knapsack in which each task's time is divided among all blocks that need it, which
// never costs more than a union.
//
// This has its own search instead of a solver of integer programs: this one problem is small, and
// GLPK would put the whole program under the GPL.

#include <cstdint>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

struct DropItem {
  Bytes bytes{};                    ///< More than 0.
  std::vector<std::uint32_t> work;  ///< Indices into DropProblem::times, each once.
};

struct DropProblem {
  std::vector<DropItem> items;
  std::vector<Nanoseconds> times;
  Bytes wanted{};
};

struct DropChoice {
  std::vector<std::uint32_t> items;  ///< In ascending order.
  Bytes bytes{};
  Nanoseconds time{0};
  bool least = false;  ///< It is proven that no cheaper choice exists.
};

/// Returns all items if even these do not save enough.
DropChoice drop_greedily(const DropProblem& problem);

/// Never worse than drop_greedily(). Gives up after examining `effort` items and returns the best
/// found.
DropChoice drop_cheapest(const DropProblem& problem, std::int64_t effort = 2'000'000);

}  // namespace foretrace
