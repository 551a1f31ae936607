#pragma once

// Chains of kernels that a compiler would make one kernel of, and how long that one takes.
//
//     stream |aaabbbbcc|  ->  |ffff|      a, b and c read and write all of x; f reads it once
//
// A fused kernel moves what comes into the chain and what leaves it, and keeps in registers what
// only the chain itself knows. Where all accesses to memory are known:
//
//     t = sum(t of kernels bound by memory) * bytes(inputs, outputs) / bytes(all that was moved)
//
// Otherwise each tensor that a kernel moves is taken to be of one size, so that it costs
// t / tensors, and at each junction the tensor in between is neither written nor read:
//
//     saved = 2 * min(t(a) / tensors(a), t(b) / tensors(b))
//
// Data that a reduction has read is at hand for one kernel behind it, as in x / sum(x).
//
// Kernels bound by arithmetic keep their own time. Ignored: caches, in which a tensor may have
// stayed from one kernel to the next; registers, of which a long chain may want too many.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/select.h"
#include "transform/edit/edit.h"

namespace foretrace {

/// Says which kernels may be joined.
struct ChainRule {
  std::int64_t longest = 64;       ///< Kernels in a chain.
  std::int64_t reductions = 2;     ///< Reductions and normalizations in a chain, at most.
  bool any = false;                ///< Kernels of whatever kind, and chains of one kernel too.
  std::vector<NamePattern> names;  /// If given, chains of kernels with these names, one of each, in
                                   /// this order, instead of any that may be joined by class.
};

/// Finds chains of selected tasks, in order of lanes. A chain stays within a phase and a step. It
/// ends where a kernel waits for more than its launch and its own stream, where another stream or
/// the host waits for one, and where the host waits for the device between two launches. Kernels
/// that TorchInductor made (triton_*) are joined by name only: it has left them apart.
std::vector<Group> find_chains(const Graph& graph, const Launches& launches,
                               const std::vector<TaskId>& tasks, const ChainRule& rule);

/// How the fused kernel's time is worked out.
struct ChainCost {
  std::string duration = "traffic";  ///< Or "sum", "longest".
  std::int64_t tensors = 3;          ///< Moved by a kernel whose name does not tell.
  Nanoseconds shortest{1000};

  void describe(Fields& fields);
};

struct ChainsFused {
  std::size_t chains = 0, kernels = 0, launches = 0, by_bytes = 0;
  std::size_t temporaries = 0;  ///< Allocations that are not needed any more.
  Nanoseconds before{0}, after{0};
  Bytes bytes_kept{};  ///< No longer moved, where accesses tell.
  Bytes freed{};       ///< The total size of those allocations.
  std::vector<TaskId> fused;

  std::string to_text() const;
  void add_to(Effect& effect, const ChainCost& cost) const;
};

/// Makes each chain one kernel.
ChainsFused fuse_chains(Graph& graph, const std::vector<Group>& chains, const ChainCost& cost);

}  // namespace foretrace
