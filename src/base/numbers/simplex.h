#pragma once

#include <functional>
#include <vector>

namespace foretrace {

struct SimplexSearch {
  double edge = 0.3;  ///< Extent of the first simplex from the start, in each direction.
  int steps = 1500;   ///< Maximum number of steps.
  /// The search ends when the vertices' costs differ by at most this share of the least.
  double tolerance = 0;
};

/// Returns the point where `cost` is least, searched with Nelder and Mead's simplex (1965) from
/// `start`. Deterministic.
std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& cost,
                             const std::vector<double>& start, const SimplexSearch& search);

}  // namespace foretrace
