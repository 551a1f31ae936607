#pragma once

// Finds chains of kernels that a compiler would fuse into one kernel, and predicts how long the
// fused kernel takes.
//
//     stream |aaabbbbcc|  ->  |ffff|      a, b and c read and write all of x; f reads it once
//
// A fused kernel reads the inputs of the chain and writes its outputs; values that only the chain
// uses stay in registers. Where all accesses to memory are known:
//
//     t = sum(t of kernels bound by memory) * bytes(inputs, outputs) / bytes(all accesses)
//
// Otherwise all tensors of a kernel are assumed to have the same size, so that moving one takes t /
// tensors. At each junction the tensor in between is neither written nor read, which saves
//
//     saved = 2 * min(t(a) / tensors(a), t(b) / tensors(b))
//
// One kernel behind a reduction need not read the data of the reduction again, as in x / sum(x).
//
// Kernels bound by arithmetic keep their own time. Ignored: caches, which may still hold a tensor
// when the next kernel reads it; registers, of which a long chain may need too many.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/select.h"
#include "transform/edit/edit.h"

namespace foretrace {

/// Says which kernels may be joined.
struct ChainRule {
  std::int64_t longest = 64;    ///< Kernels in a chain, at most.
  std::int64_t reductions = 2;  ///< Reductions and normalizations in a chain, at most.
  bool any = false;             ///< Join kernels of any class; a single kernel is a chain too.
  /// If given, a chain has one kernel for each of these names, in this order, whatever their class.
  std::vector<NamePattern> names;
};

/// Finds chains among `tasks`, which are in lane order. A chain stays within a phase and a step. It
/// ends where a kernel waits for more than its launch and its own stream, where another stream or
/// the host waits for a kernel, and where the host waits for the device between two launches.
/// Kernels that TorchInductor made (triton_*) are never joined by class, because the compiler chose
/// not to fuse them.
std::vector<Group> find_chains(const Graph& graph, const Launches& launches,
                               const std::vector<TaskId>& tasks, const ChainRule& rule);

/// How the time of a fused kernel is computed.
struct ChainCost {
  std::string duration = "traffic";  ///< Or "sum", "longest".
  std::int64_t tensors = 3;          ///< Moved by a kernel whose name does not say how many.
  Nanoseconds shortest{1000};

  void describe(Fields& fields);
};

struct ChainsFused {
  std::size_t chains = 0, kernels = 0, launches = 0, by_bytes = 0;
  std::size_t temporaries = 0;  ///< Allocations that fusion makes unnecessary.
  Nanoseconds before{0}, after{0};
  Bytes bytes_kept{};  ///< Traffic saved, where accesses are recorded.
  Bytes freed{};       ///< The total size of those allocations.
  std::vector<TaskId> fused;

  std::string to_text() const;
  void add_to(Effect& effect, const ChainCost& cost) const;
};

/// Fuses each chain into one kernel.
ChainsFused fuse_chains(Graph& graph, const std::vector<Group>& chains, const ChainCost& cost);

}  // namespace foretrace
