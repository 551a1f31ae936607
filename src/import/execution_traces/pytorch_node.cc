// Parses one node of PyTorch's execution trace, in any version of the schema.

#include "import/common/word_table.h"
#include "import/execution_traces/pytorch_et.h"

namespace foretrace {

namespace {

enum class Key : std::uint8_t {
  unknown,
  id,
  name,
  parent,
  inputs,
  input_shapes,
  input_types,
  outputs,
  output_shapes,
  output_types,
  attributes,
  category,
  record_function,
  sequence,
  scope,
  thread,
  forward_thread,
};

constexpr WordTable<Key, 64> kKeys{
    {"id", Key::id},
    {"name", Key::name},
    {"parent", Key::parent},
    {"ctrl_deps", Key::parent},
    {"inputs", Key::inputs},
    {"input_shapes", Key::input_shapes},
    {"input_types", Key::input_types},
    {"outputs", Key::outputs},
    {"output_shapes", Key::output_shapes},
    {"output_types", Key::output_types},
    {"attrs", Key::attributes},
    {"cat", Key::category},
    {"rf_id", Key::record_function},
    {"seq_id", Key::sequence},
    {"scope", Key::scope},
    {"tid", Key::thread},
    {"fw_tid", Key::forward_thread},
};

/// The parent's id, which may be a number or the first one in a list.
std::uint64_t parent_of(const JsonValue& value) {
  if (value.kind != ValueKind::array) return static_cast<std::uint64_t>(to_integer(value));
  std::uint64_t parent = 0;
  each_element(value, [&](const JsonValue& element) {
    if (parent == 0) parent = static_cast<std::uint64_t>(to_integer(element));
  });
  return parent;
}

void read_arguments(const JsonValue& value, Arguments& arguments) {
  if (value.kind == ValueKind::array) {
    arguments.values = value;
    return;
  }
  each_member(value, [&](std::string_view key, const JsonValue& list) {
    if (key == "values") arguments.values = list;
    if (key == "shapes") arguments.shapes = list;
    if (key == "types") arguments.types = list;
  });
}

void set_number(Key key, const JsonValue& value, PytorchNode& node) {
  switch (key) {
    case Key::record_function:
      node.record_function = to_integer(value);
      return;
    case Key::sequence:
      node.sequence = to_integer(value);
      return;
    case Key::scope:
      node.scope = to_integer(value);
      return;
    case Key::thread:
      node.thread = to_integer(value);
      return;
    case Key::forward_thread:
      node.forward_thread = static_cast<std::uint64_t>(to_integer(value));
      return;
    default:
      return;
  }
}

void read_attributes(const JsonValue& list, PytorchNode& node) {
  each_element(list, [&](const JsonValue& attribute) {
    JsonValue name, value;
    each_member(attribute, [&](std::string_view key, const JsonValue& member) {
      if (key == "name") name = member;
      if (key == "value") value = member;
    });
    if (name.kind == ValueKind::text && value.kind != ValueKind::none)
      set_number(kKeys.find(name.view()), value, node);
  });
}

void read_member(Key key, const JsonValue& value, PytorchNode& node) {
  switch (key) {
    case Key::name:
      node.name = value;
      return;
    case Key::parent:
      node.parent = parent_of(value);
      return;
    case Key::inputs:
      return read_arguments(value, node.inputs);
    case Key::input_shapes:
      node.inputs.shapes = value;
      return;
    case Key::input_types:
      node.inputs.types = value;
      return;
    case Key::outputs:
      return read_arguments(value, node.outputs);
    case Key::output_shapes:
      node.outputs.shapes = value;
      return;
    case Key::output_types:
      node.outputs.types = value;
      return;
    case Key::attributes:
      return read_attributes(value, node);
    case Key::category:
      node.is_on_device = value.kind == ValueKind::text;
      return;
    default:
      return set_number(key, value, node);
  }
}

}  // namespace

bool parse_pytorch_node(const JsonValue& text, PytorchNode& node) {
  bool has_id = false;
  const bool whole = each_member(text, [&](std::string_view key, const JsonValue& value) {
    const Key known = kKeys.find(key);
    if (known == Key::id) {
      has_id = is_integer(value);
      node.id = static_cast<std::uint64_t>(to_integer(value));
      return;
    }
    read_member(known, value, node);
  });
  return whole && has_id && node.name.kind == ValueKind::text;
}

}  // namespace foretrace
