#include "base/numbers/simplex.h"

#include <algorithm>

namespace foretrace {
namespace {

struct Corner {
  double cost = 0;
  std::vector<double> at;
};

bool is_less(const Corner& a, const Corner& b) { return a.cost < b.cost; }

}  // namespace

std::vector<double> least_of(const std::function<double(const std::vector<double>&)>& cost,
                             const std::vector<double>& start, const SimplexSearch& search) {
  const std::size_t size = start.size();
  std::vector<Corner> corners(size + 1);
  for (std::size_t i = 0; i <= size; ++i) {
    corners[i].at = start;
    if (i > 0) corners[i].at[i - 1] += search.edge;
    corners[i].cost = cost(corners[i].at);
  }
  for (int step = 0; step < search.steps; ++step) {
    std::ranges::stable_sort(corners, is_less);
    if (corners[size].cost - corners[0].cost <= search.flat * corners[0].cost) break;
    std::vector<double> center(size, 0);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t k = 0; k < size; ++k)
        center[k] += corners[i].at[k] / static_cast<double>(size);
    }
    Corner& worst = corners[size];
    const auto along = [&](double part) {
      Corner moved{.at = center};
      for (std::size_t k = 0; k < size; ++k) moved.at[k] += part * (worst.at[k] - center[k]);
      moved.cost = cost(moved.at);
      return moved;
    };
    const Corner mirrored = along(-1);
    if (mirrored.cost < corners[0].cost) {
      const Corner farther = along(-2);
      worst = farther.cost < mirrored.cost ? farther : mirrored;
    } else if (mirrored.cost < corners[size - 1].cost) {
      worst = mirrored;
    } else if (const Corner nearer = along(.5); nearer.cost < worst.cost) {
      worst = nearer;
    } else {
      for (std::size_t i = 1; i <= size; ++i) {
        for (std::size_t k = 0; k < size; ++k)
          corners[i].at[k] = (corners[i].at[k] + corners[0].at[k]) / 2;
        corners[i].cost = cost(corners[i].at);
      }
    }
  }
  return std::ranges::min_element(corners, is_less)->at;
}

}  // namespace foretrace
