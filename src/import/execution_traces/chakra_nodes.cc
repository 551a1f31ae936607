#include "import/execution_traces/chakra_nodes.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "base/json_text.h"
#include "import/common/word_table.h"
#include "import/kineto/kineto_trace.h"
#include "import/scan/json_stream.h"

namespace foretrace {

namespace {

constexpr std::int64_t kMaxMicros = 4'000'000'000'000'000;
constexpr std::size_t kMaxMetadata = 256;

/// A JSON text followed by the zero bytes that a JsonCursor requires.
class PaddedJson {
 public:
  explicit PaddedJson(std::string_view python) : text_(json_from_python(python)) {
    size_ = text_.size();
    text_.append(TextWindow::kPadding, '\0');
  }
  /// Has kind ValueKind::none if the text is not JSON.
  JsonValue value() const {
    JsonCursor cursor(text_.data(), text_.data() + size_);
    JsonValue value;
    return cursor.scan_value(value) ? value : JsonValue{};
  }

 private:
  std::string text_;
  std::size_t size_ = 0;
};

/// The inputs or outputs of a node: three texts, each a list.
struct TensorLists {
  std::string_view values, shapes, types;
};

TensorLists read_tensor_lists(std::string_view message) {
  TensorLists lists;
  for (ProtoReader fields(message); fields.next();) {
    if (fields.number() == 1) lists.values = fields.bytes();
    if (fields.number() == 2) lists.shapes = fields.bytes();
    if (fields.number() == 3) lists.types = fields.bytes();
  }
  return lists;
}

struct PaddedArguments {
  explicit PaddedArguments(const TensorLists& lists)
      : values(lists.values), shapes(lists.shapes), types(lists.types) {}
  Arguments arguments() const { return {values.value(), shapes.value(), types.value()}; }
  PaddedJson values, shapes, types;
};

/// Returns 0 for a number that does not fit.
std::int64_t integer_or_zero(double number) {
  constexpr double kMax = 9e18;
  return number > -kMax && number < kMax ? static_cast<std::int64_t>(number) : 0;
}

/// The number in an attribute, of any type. REQUIRES: `fields` is at the value of the attribute.
std::int64_t number_of(const ProtoReader& fields) {
  switch (fields.number()) {
    case 3:
      return integer_or_zero(fields.double_value());
    case 5:
      return integer_or_zero(double{fields.float_value()});
    case 15:
    case 17:
      return fields.zigzag_value();
    default:
      return fields.signed_value();
  }
}

}  // namespace

enum class ChakraAttribute : std::uint8_t {
  unknown,
  is_cpu_op,
  thread,
  stream,
  record_function,
  sequence,
  forward_thread,
  scope,
  communication_type,
  communication_size,
  group,
  group_size,
  source,
  destination,
  tensor_size,
  start_ns,
  duration_ns,
};

namespace {

constexpr WordTable<ChakraAttribute, 64> kAttributes{
    {"is_cpu_op", ChakraAttribute::is_cpu_op},
    {"tid", ChakraAttribute::thread},
    {"stream", ChakraAttribute::stream},
    {"rf_id", ChakraAttribute::record_function},
    {"seq_id", ChakraAttribute::sequence},
    {"fw_tid", ChakraAttribute::forward_thread},
    {"scope", ChakraAttribute::scope},
    {"comm_type", ChakraAttribute::communication_type},
    {"comm_size", ChakraAttribute::communication_size},
    {"pg_name", ChakraAttribute::group},
    {"pg_id", ChakraAttribute::group},
    {"pg_size", ChakraAttribute::group_size},
    {"comm_src", ChakraAttribute::source},
    {"comm_dst", ChakraAttribute::destination},
    {"tensor_size", ChakraAttribute::tensor_size},
    {"start_time_ns", ChakraAttribute::start_ns},
    {"start_ns", ChakraAttribute::start_ns},
    {"duration_ns", ChakraAttribute::duration_ns},
};

/// Chakra's CollectiveCommType as profilers spell it; the number is the index.
constexpr std::string_view kCollectives[] = {"allreduce", "reduce",         "allgather",
                                             "gather",    "scatter",        "broadcast",
                                             "alltoall",  "reduce_scatter", "reduce_scatter_block",
                                             "barrier"};

}  // namespace

struct ChakraNodes::Draft {
  ChakraNode node;
  std::string_view name;
  std::string_view inputs, outputs;  ///< Messages that are not parsed yet.
  std::int64_t start_micros = 0, duration_micros = 0;
  std::map<ChakraAttribute, std::int64_t> numbers;
  std::string group;

  bool has(ChakraAttribute attribute) const { return numbers.contains(attribute); }
  std::int64_t number(ChakraAttribute attribute, std::int64_t otherwise) const {
    const auto found = numbers.find(attribute);
    return found == numbers.end() ? otherwise : found->second;
  }
};

bool ChakraNodes::add(std::string_view message) {
  Draft draft;
  if (!read_fields(message, draft)) return false;
  ChakraNode& node = draft.node;
  set_times(draft);
  std::int64_t invalid = 0;
  node.name = names_.intern(valid_text(draft.name, invalid));
  node.is_frame = draft.name.starts_with("[pytorch|profiler|execution_");
  node.has_cpu_flag = draft.has(ChakraAttribute::is_cpu_op);
  node.on_device = draft.number(ChakraAttribute::is_cpu_op, 1) == 0;
  node.thread = draft.number(ChakraAttribute::thread, 0);
  node.stream = draft.number(ChakraAttribute::stream, -1);
  node.scope = draft.number(ChakraAttribute::scope, 0);
  // The converter copies the record function and the thread of the launching op. A device node
  // without a record function has not got them, so its "thread" is its stream.
  node.thread_is_stream =
      draft.has(ChakraAttribute::thread) && !draft.has(ChakraAttribute::record_function);
  if (node.is_communication()) describe_communication(draft);
  if (node.on_device) {
    describe_device_node(draft);
  } else if (!node.is_frame) {
    describe_op(draft);
  }
  nodes_.push_back(std::move(node));
  return true;
}

bool ChakraNodes::read_fields(std::string_view message, Draft& draft) {
  ChakraNode& node = draft.node;
  ProtoReader fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        node.id = fields.unsigned_value();
        break;
      case 2:
        draft.name = fields.bytes();
        break;
      case 3:
        node.type = static_cast<ChakraType>(std::min<std::uint64_t>(fields.unsigned_value(), 255));
        break;
      case 4:
        fields.each_varint([&](std::uint64_t id) { node.control.push_back(id); });
        break;
      case 5:
        fields.each_varint([&](std::uint64_t id) { node.data.push_back(id); });
        break;
      case 6:
        draft.start_micros = fields.signed_value();
        break;
      case 7:
        draft.duration_micros = fields.signed_value();
        break;
      case 8:
        draft.inputs = fields.bytes();
        break;
      case 9:
        draft.outputs = fields.bytes();
        break;
      case 10:
        read_attribute(fields.bytes(), draft);
        break;
      default:
        break;
    }
  }
  return !fields.damaged();
}

/// Attributes with nanoseconds take precedence over the fields with microseconds.
void ChakraNodes::set_times(Draft& draft) {
  const auto possible = [](std::int64_t time, std::int64_t most) {
    return time >= 0 && time <= most;
  };
  if (!possible(draft.start_micros, kMaxMicros) || !possible(draft.duration_micros, kMaxMicros)) {
    ++impossible_times_;
    draft.start_micros = draft.duration_micros = 0;
  }
  ChakraNode& node = draft.node;
  if (draft.start_micros > 0) node.start_ns = draft.start_micros * 1000;
  node.duration_ns = draft.duration_micros * 1000;
  const auto replace = [&](ChakraAttribute attribute, std::int64_t& time) {
    const std::int64_t exact = draft.number(attribute, -1);
    if (!possible(exact, 1000 * kMaxMicros)) return;
    time = exact;
    trace_.tick_ns = 1;
  };
  replace(ChakraAttribute::start_ns, node.start_ns);
  replace(ChakraAttribute::duration_ns, node.duration_ns);
}

void ChakraNodes::read_attribute(std::string_view message, Draft& draft) {
  std::string_view name;
  for (ProtoReader fields(message); fields.next();) {
    if (fields.number() == 1) name = fields.bytes();
    if (fields.number() > 2 && !name.empty()) set_attribute(name, fields, draft);
  }
}

void ChakraNodes::set_attribute(std::string_view name, const ProtoReader& value, Draft& draft) {
  // A WordTable reads eight bytes, even of a shorter word.
  char padded[32] = {};
  if (name.size() > sizeof padded - 8) return;
  std::copy(name.begin(), name.end(), padded);
  const ChakraAttribute known = kAttributes.find({padded, name.size()});
  if (known == ChakraAttribute::unknown) return;
  if (known == ChakraAttribute::group)
    draft.group = value.wire() == WireType::bytes ? std::string(value.bytes())
                                                  : std::to_string(number_of(value));
  draft.numbers[known] = number_of(value);
}

void ChakraNodes::describe_op(Draft& draft) {
  const PaddedArguments inputs(read_tensor_lists(draft.inputs));
  const PaddedArguments outputs(read_tensor_lists(draft.outputs));
  const Arguments arguments = inputs.arguments();
  const auto text = [&](const JsonValue& list) {
    return list.kind == ValueKind::array ? names_.intern(json_text(list)) : NameId{};
  };
  OpDetails details;
  details.shapes = text(arguments.shapes);
  details.types = text(arguments.types);
  details.values = names_.intern(tensors_.concrete_values(arguments));
  details.sequence = draft.number(ChakraAttribute::sequence, -1);
  details.forward_thread =
      static_cast<std::uint64_t>(draft.number(ChakraAttribute::forward_thread, 0));
  const std::int64_t id = draft.number(ChakraAttribute::record_function, 0);
  details.record_function = id > 0 ? id : -1;
  draft.node.details = static_cast<std::uint32_t>(trace_.op_details.size());
  trace_.op_details.push_back(details);
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  tensors_.add(number, arguments, false);
  tensors_.add(number, outputs.arguments(), true);
}

/// Sets the device and the size of a copy. A device node repeats the arguments of its op, which
/// contain both.
void ChakraNodes::describe_device_node(Draft& draft) {
  const std::size_t before = trace_.tensors.size();
  const PaddedArguments outputs(read_tensor_lists(draft.outputs));
  const PaddedArguments inputs(read_tensor_lists(draft.inputs));
  tensors_.add(0, outputs.arguments(), true);
  tensors_.add(0, inputs.arguments(), false);
  std::int64_t written = 0;
  for (std::size_t i = before; i < trace_.tensors.size(); ++i) {
    const TensorRecord& tensor = trace_.tensors[i];
    if (tensor.device >= 0) draft.node.device = tensor.device;
    if (tensor.is_output && __builtin_add_overflow(written, tensor.bytes, &written)) written = 0;
  }
  trace_.tensors.resize(before);
  draft.node.bytes = written > 0
                         ? written
                         : std::max<std::int64_t>(0, draft.number(ChakraAttribute::tensor_size, 0));
}

void ChakraNodes::describe_communication(Draft& draft) {
  if (!draft.has(ChakraAttribute::communication_size) &&
      !draft.has(ChakraAttribute::communication_type) && draft.node.type == ChakraType::collective)
    return;
  CollectiveDetails details;
  const auto type =
      static_cast<std::uint64_t>(draft.number(ChakraAttribute::communication_type, -1));
  if (draft.node.type != ChakraType::collective) {
    details.collective = names_.intern(draft.node.type == ChakraType::send ? "send" : "recv");
    const std::int64_t nobody = -1;
    details.ranks =
        names_.intern(fmt::format("[{}, {}]", draft.number(ChakraAttribute::source, nobody),
                                  draft.number(ChakraAttribute::destination, nobody)));
  } else if (type < std::size(kCollectives)) {
    details.collective = names_.intern(kCollectives[type]);
  }
  // The file gives the size in bytes, so the element type is a byte.
  details.dtype = names_.intern("Byte");
  details.in_elements =
      std::max<std::int64_t>(0, draft.number(ChakraAttribute::communication_size, 0));
  details.group = names_.intern(draft.group);
  details.group_size = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(draft.number(ChakraAttribute::group_size, 0), 0, 1 << 30));
  draft.node.collective = static_cast<std::uint32_t>(trace_.collectives.size());
  trace_.collectives.push_back(details);
}

/// Field 1 is the version and field 2 an attribute. In the oldest files field 1 is an attribute,
/// and field 2 is missing.
void ChakraNodes::add_metadata(std::string_view message) {
  for (ProtoReader fields(message); fields.next();) {
    const bool is_version = fields.number() == 1 && !fields.bytes().starts_with('\n');
    if (is_version) {
      trace_.metadata["version"] = json_string(fields.bytes());
    } else if (fields.number() <= 2 && trace_.metadata.size() < kMaxMetadata) {
      read_metadata_attribute(fields.bytes());
    }
  }
}

void ChakraNodes::read_metadata_attribute(std::string_view message) {
  std::string name, value;
  for (ProtoReader fields(message); fields.next();) {
    if (fields.number() == 1) name = std::string(fields.bytes());
    if (fields.number() > 2) {
      value = fields.wire() == WireType::bytes ? json_string(fields.bytes())
                                               : std::to_string(number_of(fields));
    }
  }
  if (!name.empty()) trace_.metadata[name] = value;
}

void ChakraNodes::write_notes() {
  if (impossible_times_ > 0) {
    trace_.notes.add(Severity::warning, "nodes with impossible times, read as 0", {},
                     impossible_times_);
  }
  tensors_.write_notes();
}

}  // namespace foretrace
