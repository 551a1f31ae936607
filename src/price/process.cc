#include "price/process.h"

#include <algorithm>
#include <cmath>

namespace foretrace {

double similarity(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kMachinePart = .5;  ///< Share of the variance.
  double distance = 0, machine = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i == kMachineSizes) machine = distance;
    distance += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return kMachinePart * std::exp(-machine / 2) + (1 - kMachinePart) * std::exp(-distance / 2);
}

std::vector<std::vector<double>> cholesky_factor(const std::vector<std::vector<double>>& shapes,
                                                 double signal, double noise) {
  const std::size_t n = shapes.size();
  std::vector<std::vector<double>> factor(n);
  for (std::size_t i = 0; i < n; ++i) {
    factor[i].resize(i + 1);
    for (std::size_t j = 0; j <= i; ++j) {
      double sum =
          signal * signal * similarity(shapes[i], shapes[j]) + (i == j ? noise * noise : 0);
      for (std::size_t k = 0; k < j; ++k) sum -= factor[i][k] * factor[j][k];
      factor[i][j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / factor[j][j];
    }
  }
  return factor;
}

std::vector<double> solved_forward(const std::vector<std::vector<double>>& factor,
                                   std::vector<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) values[i] -= factor[i][k] * values[k];
    values[i] /= factor[i][i];
  }
  return values;
}

std::vector<double> solved_backward(const std::vector<std::vector<double>>& factor,
                                    std::vector<double> values) {
  for (std::size_t i = values.size(); i-- > 0;) {
    for (std::size_t k = i + 1; k < values.size(); ++k) values[i] -= factor[k][i] * values[k];
    values[i] /= factor[i][i];
  }
  return values;
}

}  // namespace foretrace
