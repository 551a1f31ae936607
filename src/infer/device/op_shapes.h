#pragma once

// The shapes that the profiler wrote with an op, and work that follows from them.

#include <cstddef>
#include <string_view>
#include <vector>

namespace foretrace {

/// Work that Task::flops leaves out, because the rates that transforms use were fitted without it:
/// attention, and the gradients of convolutions.
struct OtherWork {
  double flops = 0;  ///< Of each of the op's longest kernels; 0 if not known.
  std::size_t kernels = 1;
};

/// The texts are those that were recorded with the op. See flops.cc.
OtherWork other_work(std::string_view op, std::string_view shapes, std::string_view values);

}  // namespace foretrace

namespace foretrace::infer_detail {

using Shape = std::vector<double>;

/// Returns the lists of numbers in a JSON text such as [[32, 3], [], [64]]; an empty shape for
/// anything that is not a list of numbers.
std::vector<Shape> read_shapes(std::string_view text);

/// Returns the texts of a JSON list: ["float", "", "Scalar"].
std::vector<std::string_view> read_texts(std::string_view list);

/// The value at a place in a list such as ["", "[1, 1]", "True"]; empty if there is none.
std::string_view value_at(std::string_view text, std::size_t place);

/// Number of elements; 1 for a scalar.
double product(const Shape& shape);

}  // namespace foretrace::infer_detail
