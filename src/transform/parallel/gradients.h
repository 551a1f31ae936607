#pragma once

// The gradients that a backward pass makes: how large each is, when it is ready, and which tasks
// read them.
//
//     stream   |FFFF|B3 B2 B1|U        gradient 3 is ready first; U, the update, reads all

#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// An element in fp32. Nothing smaller is sent by itself.
inline constexpr Bytes kGradientElement{4};

struct Gradient {
  Bytes bytes{};
  TaskId ready = kNoTask;  ///< The last device task of the pass that writes it.
};

/// The backward pass of one step; with several micro-batches the last of them.
struct BackwardPass {
  std::int32_t step = -1;
  TaskId first = kNoTask;           ///< The device task of either pass that starts first.
  TaskId last = kNoTask;            ///< The device task of the backward pass that ends last.
  std::vector<TaskId> readers;      ///< First device tasks behind the pass that may read gradients.
  std::vector<Gradient> gradients;  ///< In the order in which they are ready.
};

struct Gradients {
  std::vector<BackwardPass> passes;  ///< In order of time.
  /// Whether the sizes and writers are those of the trace. Otherwise the bytes are spread over the
  /// kernels of the pass in proportion to their time.
  bool are_recorded = false;
  GradientEstimate estimate = {};  ///< The size, if it was neither recorded nor given.
};

/// `given` is the size of all gradients together, 0 to take it from the trace: from its blocks of
/// memory, otherwise from Graph::gradient_estimate(). Throws Error if the trace shows no backward
/// pass, or if it shows no sizes and `given` is 0. Linear, apart from sorting.
Gradients find_gradients(const Graph& graph, const Timeline& timeline, Bytes given);

/// Says what is not recorded about the gradients.
void assume_gradients(const Gradients& found, std::vector<std::string>& assumptions);

/// Throws Error if the recorded job communicates, or if an earlier step has made it send gradients.
void refuse_communication(const Graph& graph);

Bytes total_bytes(const BackwardPass& pass);

}  // namespace foretrace
