#pragma once

// The shapes that the profiler wrote with an op.

#include <string_view>
#include <vector>

namespace foretrace::infer_detail {

using Shape = std::vector<double>;

/// Returns the lists of numbers in a JSON text such as [[32, 3], [], [64]]; an empty shape for
/// anything that is not a list of numbers.
std::vector<Shape> read_shapes(std::string_view text);

/// Number of elements; 1 for a scalar.
double product(const Shape& shape);

}  // namespace foretrace::infer_detail
