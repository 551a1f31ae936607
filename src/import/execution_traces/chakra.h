#pragma once

// Chakra's execution traces (.et): messages of protocol buffers, each behind its length. The first
// one tells of the file, each of the others of a node: an op on a CPU thread, or work of a device.
//
//     Node { id 1, name 2, type 3, ctrl_deps 4, data_deps 5, start_time_micros 6,
//            duration_micros 7, inputs 8, outputs 9 {values 1, shapes 2, types 3}, attr 10 }
//
// Times of a file can be whole, durations alone, or missing: see ChakraTimes.

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

/// A node without its texts, which are in the trace already.
struct ChakraNode {
  std::uint64_t id = 0;
  std::vector<std::uint64_t> control, data;  ///< Nodes this one waits for, as the file says it.
  std::int64_t start_ns = -1;                ///< -1 if the file does not say.
  std::int64_t duration_ns = 0;
  std::int64_t thread = 0;
  std::int64_t stream = -1;
  std::int64_t bytes = 0;  ///< Of a copy.
  std::int64_t scope = 0;
  NameId name{};
  std::uint32_t details = kNone;     ///< Of a CPU node: into Trace::op_details.
  std::uint32_t collective = kNone;  ///< Into Trace::collectives.
  std::int16_t device = 0;
  ChakraType type = ChakraType::invalid;
  bool says_where = false;  ///< Whether it is a CPU node.
  bool on_device = false;
  bool has_stream_only = false;  ///< The thread of a device node is its stream.
  bool is_frame = false;         ///< Stands for a process or thread.

  bool is_communication() const {
    return type >= ChakraType::send && type <= ChakraType::collective;
  }
};

/// Throws TraceError.
Trace read_chakra(PeekedSource& bytes);

/// Whether these are the first bytes of such a file.
bool looks_like_chakra(std::string_view head);

/// What the nodes depend on, as numbers of nodes.
struct ChakraLinks {
  std::vector<std::uint32_t> parent;    ///< Of a CPU node: the op that called it, or kNone.
  std::vector<std::uint32_t> launcher;  ///< Of a device node: the CPU node, or kNone.
  std::vector<std::vector<std::uint32_t>> before;  ///< Nodes that must be done.
};

/// Finds those in `nodes`, which are sorted by id, and notes what points nowhere.
ChakraLinks link_nodes(const std::vector<ChakraNode>& nodes, Notes& notes);

/// When each node runs. Where the file tells durations but no starts, as Chakra's own converter
/// writes it, a node starts as early as it can: when what it depends on is done and its thread or
/// stream is free, in the order of ids. That is what simulators of these files do.
struct ChakraTimes {
  std::vector<std::int64_t> start, finish;
  /// Of a CPU node that waits for the device: when it could have gone on otherwise, and for which
  /// node; kNone for the others.
  std::vector<std::int64_t> ready;
  std::vector<std::uint32_t> awaited;
};
ChakraTimes time_nodes(const std::vector<ChakraNode>& nodes, const ChakraLinks& links,
                       Notes& notes);

/// Fills hosts, devices and syncs of `trace`. Tensors refer to nodes by number, and are made to
/// refer to host records.
void build_chakra_trace(std::vector<ChakraNode> nodes, Trace& trace);

}  // namespace foretrace
