#pragma once

// Reads the nodes of a Chakra file from bytes, one after the other.

#include "import/execution_traces/chakra.h"
#include "import/execution_traces/execution_tensors.h"
#include "import/scan/protobuf.h"

namespace foretrace {

class ChakraNodes {
 public:
  explicit ChakraNodes(Trace& trace)
      : trace_(trace), names_(trace.names), tensors_(trace, names_) {}

  /// Adds the node in a message. Returns false, and adds nothing, if the message is damaged or not
  /// a node.
  bool add(std::string_view message);
  void add_metadata(std::string_view message);

  std::vector<ChakraNode> take() { return std::move(nodes_); }
  std::size_t count() const { return nodes_.size(); }
  void write_notes();

 private:
  /// A node while its message is parsed; its texts are views into the message.
  struct Draft;

  bool read_fields(std::string_view message, Draft& draft);
  void set_times(Draft& draft);
  void read_attribute(std::string_view message, Draft& draft);
  void set_attribute(std::string_view name, const ProtoReader& value, Draft& draft);
  void read_metadata_attribute(std::string_view message);
  void describe_op(Draft& draft);
  void describe_device_node(Draft& draft);
  void describe_communication(Draft& draft);

  Trace& trace_;
  InternCache names_;
  ExecutionTensors tensors_;
  std::vector<ChakraNode> nodes_;
  std::int64_t impossible_times_ = 0;
};

}  // namespace foretrace
