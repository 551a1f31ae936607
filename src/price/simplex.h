#pragma once

#include <functional>
#include <vector>

namespace foretrace {

/// Where `cost` is least, searched by Nelder and Mead's simplex (1965) from `start`. Deterministic.
std::vector<double> least_of(const std::function<double(const std::vector<double>&)>& cost,
                             const std::vector<double>& start, int steps);

}  // namespace foretrace
