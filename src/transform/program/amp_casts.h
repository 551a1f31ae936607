#pragma once

// Kernels that mixed precision adds: conversions between FP32 and half precision, and those of a
// gradient scaler. They go in front of a kernel, behind the call that launches it.

#include <cstddef>
#include <functional>

#include "foretrace/graph.h"
#include "foretrace/transform.h"

namespace foretrace {

struct AddedConversions {
  std::size_t tasks = 0, count = 0;  ///< A task stands for all conversions of an op.
  Nanoseconds time{0};               ///< Of all steps.
};

/// Adds the conversions of Graph::autocast() in front of the kernels for which `is_converted`
/// holds, at the rate of work bound by memory on the device; none if the device is not known.
AddedConversions add_conversions(Graph& graph, const Context& context,
                                 const std::function<bool(TaskId)>& is_converted);

/// Adds a kernel of this length in front of the forward pass of each step. Returns their number.
/// Throws Error if there is no forward pass.
std::size_t add_casts_to_passes(Graph& graph, Nanoseconds duration);

/// Adds a gradient scaler to each update: it looks for infinite gradients on the device, and the
/// host needs the result before it goes on. Returns the number of its kernels. Throws Error if
/// there is no update.
std::size_t add_gradient_scaler(Graph& graph, Nanoseconds duration);

}  // namespace foretrace
