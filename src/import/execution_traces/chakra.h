#pragma once

// Chakra's execution traces (.et): messages of protocol buffers, each after its length. The first
// one describes the file, each of the others a node: an op on a CPU thread, or work of a device.
//
//     Node { id 1, name 2, type 3, ctrl_deps 4, data_deps 5, start_time_micros 6,
//            duration_micros 7, inputs 8, outputs 9 {values 1, shapes 2, types 3}, attr 10 }
//
// A file has both starts and durations, or only durations, or neither: see ChakraTimes.

#include <string_view>
#include <vector>

#include "foretrace/trace.h"
#include "import/files/source.h"

namespace foretrace {

enum class ChakraType : std::uint8_t {
  invalid = 0,
  metadata = 1,
  load = 2,
  store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7,
};

/// A node without its texts, which are already in the trace.
struct ChakraNode {
  std::uint64_t id = 0;
  std::vector<std::uint64_t> control, data;  ///< Nodes this one waits for, according to the file.
  std::int64_t start_ns = -1;                ///< -1 if not in the file.
  std::int64_t duration_ns = 0;
  std::int64_t thread = 0;
  std::int64_t stream = -1;
  std::int64_t bytes = 0;  ///< The size of a copy.
  std::int64_t scope = 0;
  NameId name{};
  std::uint32_t details = kNone;     ///< Index into Trace::op_details, for a CPU node.
  std::uint32_t collective = kNone;  ///< Index into Trace::collectives.
  std::int16_t device = 0;
  ChakraType type = ChakraType::invalid;
  bool has_cpu_flag = false;  ///< The file says whether it is a CPU node.
  bool on_device = false;
  bool thread_is_stream = false;  ///< The thread of a device node is its stream.
  bool is_frame = false;          ///< The node stands for a process or a thread.

  bool is_communication() const {
    return type >= ChakraType::send && type <= ChakraType::collective;
  }
};

/// Throws TraceError if there are no nodes or their durations are impossible.
Trace read_chakra(PeekedSource& bytes);

/// Whether a file with these first bytes is a Chakra execution trace.
bool looks_like_chakra(std::string_view head);

/// The dependencies of nodes; all values are indices of nodes.
struct ChakraLinks {
  std::vector<std::uint32_t> parent;    ///< The op that called a CPU node, or kNone.
  std::vector<std::uint32_t> launcher;  ///< The CPU node that launched a device node, or kNone.
  std::vector<std::vector<std::uint32_t>> before;  ///< Nodes that must be done first.
};

/// Finds the dependencies between `nodes`. Counts dependencies on missing nodes in the notes.
/// REQUIRES: `nodes` are sorted by id.
ChakraLinks link_nodes(const std::vector<ChakraNode>& nodes, Notes& notes);

/// When each node runs. If the file has durations but no starts, as Chakra's own converter writes
/// it, a node starts as early as possible: when its dependencies are done and its thread or stream
/// is free, in the order of ids. Simulators of these files do the same.
struct ChakraTimes {
  std::vector<std::int64_t> start, finish;
  /// For a CPU node that waits for the device: the time at which it could start without the wait,
  /// and the node it waits for. `awaited` is kNone for all other nodes.
  std::vector<std::int64_t> ready;
  std::vector<std::uint32_t> awaited;
};
ChakraTimes time_nodes(const std::vector<ChakraNode>& nodes, const ChakraLinks& links,
                       Notes& notes);

/// Fills the hosts, devices and syncs of `trace`. REQUIRES: the tensors of `trace` refer to nodes
/// by index; afterwards they refer to host records.
void build_chakra_trace(std::vector<ChakraNode> nodes, Trace& trace);

}  // namespace foretrace
