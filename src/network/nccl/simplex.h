#pragma once

#include <algorithm>
#include <array>
#include <functional>

namespace foretrace {

/// Where `cost` is least, searched by Nelder and Mead's simplex (1965) from `start`. Deterministic.
template <std::size_t kSize>
std::array<double, kSize> least(const std::function<double(const std::array<double, kSize>&)>& cost,
                                const std::array<double, kSize>& start) {
  using Point = std::array<double, kSize>;
  constexpr double kEdge = .3;  // Of the first simplex.
  constexpr int kSteps = 1500;
  constexpr double kFlat = 1e-9;  // Of the cost: corners that differ by less have met.
  struct Corner {
    double cost;
    Point at;
  };
  std::array<Corner, kSize + 1> corners;
  for (std::size_t i = 0; i <= kSize; ++i) {
    corners[i].at = start;
    if (i > 0) corners[i].at[i - 1] += kEdge;
    corners[i].cost = cost(corners[i].at);
  }
  for (int step = 0; step < kSteps; ++step) {
    std::stable_sort(corners.begin(), corners.end(),
                     [](const Corner& a, const Corner& b) { return a.cost < b.cost; });
    if (corners[kSize].cost - corners[0].cost <= kFlat * corners[0].cost) break;
    Point center{};
    for (std::size_t i = 0; i < kSize; ++i) {
      for (std::size_t k = 0; k < kSize; ++k) center[k] += corners[i].at[k] / kSize;
    }
    Corner& worst = corners[kSize];
    const auto along = [&](double part) {
      Corner moved;
      for (std::size_t k = 0; k < kSize; ++k)
        moved.at[k] = center[k] + part * (worst.at[k] - center[k]);
      moved.cost = cost(moved.at);
      return moved;
    };
    const Corner mirrored = along(-1);
    if (mirrored.cost < corners[0].cost) {
      const Corner farther = along(-2);
      worst = farther.cost < mirrored.cost ? farther : mirrored;
    } else if (mirrored.cost < corners[kSize - 1].cost) {
      worst = mirrored;
    } else if (const Corner nearer = along(.5); nearer.cost < worst.cost) {
      worst = nearer;
    } else {
      for (std::size_t i = 1; i <= kSize; ++i) {
        for (std::size_t k = 0; k < kSize; ++k)
          corners[i].at[k] = (corners[i].at[k] + corners[0].at[k]) / 2;
        corners[i].cost = cost(corners[i].at);
      }
    }
  }
  return std::min_element(corners.begin(), corners.end(),
                          [](const Corner& a, const Corner& b) { return a.cost < b.cost; })
      ->at;
}

}  // namespace foretrace
