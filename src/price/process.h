#pragma once

// A Gaussian process. Its kernel is the sum of two squared exponentials of unit length in each
// direction: one over all numbers of a shape, one over its first kMachineSizes numbers only, so
// that one step on a device tells something about all steps there.

#include <cstddef>
#include <vector>

namespace foretrace {

inline constexpr std::size_t kMachineSizes = 4;

/// Returns how alike two shapes are; 1 for equal shapes.
double similarity(const std::vector<double>& a, const std::vector<double>& b);

/// Returns the lower triangle of Cholesky's factor of signal^2 similarity + noise^2 identity.
std::vector<std::vector<double>> cholesky_factor(const std::vector<std::vector<double>>& shapes,
                                                 double signal, double noise);
/// Return factor^-1 values, and factor^-T values.
std::vector<double> solved_forward(const std::vector<std::vector<double>>& factor,
                                   std::vector<double> values);
std::vector<double> solved_backward(const std::vector<std::vector<double>>& factor,
                                    std::vector<double> values);

}  // namespace foretrace
