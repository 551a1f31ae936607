#include "import/execution_traces/pytorch_et.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/contains.h"
#include "foretrace/error.h"
#include "import/common/rank_name.h"
#include "import/execution_traces/execution_order.h"
#include "import/files/registered.h"
#include "import/files/source.h"

namespace foretrace {

namespace {

constexpr std::size_t kLongestEtMetadata = 64 * 1024;
constexpr std::size_t kMaxEtKeys = 256;

/// Whether a node of this name stands for a process or a thread.
bool is_frame(std::string_view name) { return name.starts_with("[pytorch|profiler|execution_"); }

}  // namespace

bool recognizes_pytorch_et(const Sniffed& file) {
  const std::size_t start = file.head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || file.head[start] != '{') return false;
  if (!contains(file.head, "\"nodes\"") || contains(file.head, "\"traceEvents\"")) return false;
  return contains(file.head, "\"schema\"") || contains(file.head, "\"ctrl_deps\"") ||
         contains(file.head, "\"op_schema\"");
}

Trace read_pytorch_et(const TraceFile& input) {
  const auto bytes = input.open();
  Trace trace = within(input.path(), [&] { return PytorchDocument(*bytes).read(); });
  if (const auto rank = rank_of_execution_trace(input.path())) trace.rank = *rank;
  trace.world_size = std::max(trace.world_size, trace.rank + 1);
  return trace;
}

Trace PytorchDocument::read() {
  trace_.format = "pytorch_et";
  trace_.has_times = false;
  if (json_.peek() == '\xef') {
    for (int i = 0; i < 3; ++i) json_.skip();
  }
  if (json_.peek() != '{') throw TraceError("must be a JSON object with \"nodes\"");
  json_.skip();
  read_members();
  if (trace_.hosts.empty()) {
    if (cut_) throw TraceError("must contain nodes, but ends or is damaged before the first op");
    throw TraceError(
        !has_nodes_   ? "must have \"nodes\", a list"
        : nodes_ == 0 ? "must contain nodes, but its list of nodes is empty"
                      : fmt::format("must contain ops, but none of its {} nodes is one", nodes_));
  }
  set_positions(trace_, ids_);
  lanes_.finish();
  for (Thread& thread : trace_.threads) thread.process = process_;
  write_notes();
  return std::move(trace_);
}

void PytorchDocument::read_members() {
  for (;;) {
    const char next = json_.peek();
    if (next == '}') return;
    if (next == ',') {
      json_.skip();
      continue;
    }
    if (next == 0) return note_cut("before its end");
    if (next != '"' || !read_member()) {
      if (!cut_) note_cut(json_.ended() ? "before its end" : "by text that is not JSON");
      return;
    }
    if (cut_) return;
  }
}

bool PytorchDocument::read_member() {
  JsonValue value;
  if (!json_.read(value)) return false;
  const std::string key(value.view());
  if (keys_.size() < kMaxEtKeys) keys_.push_back(key);
  if (json_.peek() != ':') return false;
  json_.skip();
  const char next = json_.peek();
  if (key == "nodes" && next == '[') {
    json_.skip();
    read_nodes();
    return true;
  }
  if (next == '{' || next == '[') return json_.skip_value();
  if (!json_.read(value)) return false;
  if (key == "pid" && is_integer(value)) process_ = to_integer(value);
  if (value.size <= kLongestEtMetadata && trace_.metadata.size() < kMaxEtKeys)
    trace_.metadata[key] = json_text(value);
  return true;
}

void PytorchDocument::read_nodes() {
  has_nodes_ = true;
  for (;;) {
    const char next = json_.peek();
    if (next == ']') return json_.skip();
    if (next == ',') {
      json_.skip();
      continue;
    }
    const std::int64_t offset = json_.offset();
    JsonValue text;
    if (next == 0 || !json_.read(text))
      return note_cut(json_.ended() ? "in its list of nodes" : "by text that is not JSON");
    add(text, offset);
  }
}

void PytorchDocument::add(const JsonValue& text, std::int64_t offset) {
  ++nodes_;
  PytorchNode node;
  if (!parse_pytorch_node(text, node)) {
    if (damaged_++ == 0) first_damaged_ = offset;
    return;
  }
  if (is_frame(node.name.view())) return;
  if (node.is_on_device) {
    ++on_device_;
    return;
  }
  const auto host = static_cast<std::uint32_t>(trace_.hosts.size());
  HostRecord record;
  record.name = name(node.name);
  record.kind = node.scope == kUserScope ? HostKind::annotation : HostKind::op;
  record.thread = lanes_.thread(0, node.thread);
  record.details = details(node);
  trace_.hosts.push_back(record);
  ids_.push_back({node.id, node.parent});
  tensors_.add(host, node.inputs, false);
  tensors_.add(host, node.outputs, true);
}

NameId PytorchDocument::name(const JsonValue& value) {
  if (!value.escaped && !value.non_ascii) return names_.intern(value.view());
  return names_.intern(decode_text(value, invalid_texts_));
}

std::uint32_t PytorchDocument::details(const PytorchNode& node) {
  OpDetails details;
  const auto text = [&](const JsonValue& list) {
    return list.kind == ValueKind::array ? name(list) : NameId{};
  };
  details.shapes = text(node.inputs.shapes);
  details.types = text(node.inputs.types);
  details.values = names_.intern(tensors_.concrete_values(node.inputs));
  details.sequence = node.sequence;
  details.forward_thread = node.forward_thread;
  details.record_function = node.record_function > 0 ? node.record_function : -1;
  trace_.op_details.push_back(details);
  return static_cast<std::uint32_t>(trace_.op_details.size() - 1);
}

void PytorchDocument::note_cut(std::string_view where) {
  cut_ = true;
  foretrace::note_cut(trace_.notes, where, bytes_.damage(), json_.offset());
}

void PytorchDocument::write_notes() {
  if (damaged_ > 0) {
    trace_.notes.add(Severity::warning, "nodes that are not JSON or have no id or name, left out",
                     "at byte " + std::to_string(first_damaged_), damaged_);
  }
  if (on_device_ > 0) {
    trace_.notes.add(Severity::info, "device nodes, which PyTorch does not write, left out", {},
                     on_device_);
  }
  if (invalid_texts_ > 0)
    trace_.notes.add(Severity::warning, "strings that are not valid UTF-8", {}, invalid_texts_);
  tensors_.write_notes();
}

}  // namespace foretrace
