#pragma once

// A Gaussian process. Its kernel is the sum of two squared exponentials of unit length in each
// direction: one over all of a shape, one over its first kMachineSizes numbers only, so that one
// step on a device says something of all steps there.

#include <cstddef>
#include <vector>

namespace foretrace {

inline constexpr std::size_t kMachineSizes = 4;

/// 1 for equal shapes.
double likeness(const std::vector<double>& a, const std::vector<double>& b);

/// The lower triangle of Cholesky's factor of signal^2 likeness + noise^2 identity.
std::vector<std::vector<double>> factor_of(const std::vector<std::vector<double>>& shapes,
                                           double signal, double noise);
/// factor^-1 values, and factor^-T values.
std::vector<double> solved_forward(const std::vector<std::vector<double>>& factor,
                                   std::vector<double> values);
std::vector<double> solved_backward(const std::vector<std::vector<double>>& factor,
                                    std::vector<double> values);

}  // namespace foretrace
