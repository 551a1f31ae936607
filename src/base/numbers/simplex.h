#pragma once

#include <functional>
#include <vector>

namespace foretrace {

struct SimplexSearch {
  double edge = 0.3;  ///< The first simplex reaches so far from the start in each direction.
  int steps = 1500;   ///< At most.
  double flat = 0;    ///< It ends where the corners' costs differ by this share of the least.
};

/// Where `cost` is least, searched by Nelder and Mead's simplex (1965) from `start`. Deterministic.
std::vector<double> least_of(const std::function<double(const std::vector<double>&)>& cost,
                             const std::vector<double>& start, const SimplexSearch& search);

}  // namespace foretrace
