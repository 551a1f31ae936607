#pragma once

// PyTorch's execution trace: every op of some steps with the tensors it read and wrote, without
// times.
//
//     {"schema": "1.1.0-chakra.0.0.4", "pid": 7, "nodes": [
//       {"id": 6, "name": "aten::zeros", "ctrl_deps": 4,
//        "inputs": {"values": [...], "shapes": [...], "types": [...]}, "outputs": {...},
//        "attrs": [{"name": "rf_id", "type": "uint64", "value": 4}, ...]}, ...]}
//
// Up to schema 1.0.1 all of these are members of the node: "parent", "rf_id", "inputs" (the
// values), "input_shapes", "input_types".

#include <string>
#include <vector>

#include "foretrace/trace.h"
#include "import/execution_traces/execution_order.h"
#include "import/execution_traces/execution_tensors.h"
#include "import/kineto/kineto_lanes.h"
#include "import/scan/json_stream.h"

namespace foretrace {

/// A node, whose texts are views into the file's text.
struct PytorchNode {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  JsonValue name;
  std::int64_t record_function = 0;
  std::int64_t sequence = -1;
  std::int64_t scope = 0;
  std::int64_t thread = 0;
  std::uint64_t forward_thread = 0;
  bool is_on_device = false;  ///< A tool that merged a profiler's trace into the file added it.
  Arguments inputs, outputs;
};

/// Returns false if `text` is not a JSON object or has no id or name.
bool parse_pytorch_node(const JsonValue& text, PytorchNode& node);

class PytorchDocument {
 public:
  explicit PytorchDocument(Source& bytes, std::size_t window = TextWindow::kSize)
      : bytes_(bytes),
        json_(bytes, window),
        names_(trace_.names),
        lanes_(trace_),
        tensors_(trace_, names_) {}

  /// Throws TraceError if the file contains no op.
  Trace read();

 private:
  void read_members();
  bool read_member();
  void read_nodes();
  void add(const JsonValue& text, std::int64_t offset);
  NameId name(const JsonValue& value);
  std::uint32_t details(const PytorchNode& node);
  void note_cut(std::string_view where);
  void write_notes();

  Source& bytes_;
  JsonStream json_;
  Trace trace_;
  InternCache names_;
  KinetoLanes lanes_;
  ExecutionTensors tensors_;
  std::vector<NodeIds> ids_;  ///< One entry for each host record.
  std::vector<std::string> keys_;
  std::int64_t process_ = 0;
  std::int64_t nodes_ = 0;
  std::int64_t damaged_ = 0;
  std::int64_t first_damaged_ = -1;
  std::int64_t on_device_ = 0;
  std::int64_t invalid_texts_ = 0;
  bool has_nodes_ = false;
  bool cut_ = false;
};

}  // namespace foretrace
