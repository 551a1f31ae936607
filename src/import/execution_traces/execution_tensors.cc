#include "import/execution_traces/execution_tensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "import/scan/json_stream.h"

namespace foretrace {

namespace {

constexpr std::string_view kTensor = "Tensor(";

std::vector<JsonValue> elements_of(const JsonValue& array) {
  std::vector<JsonValue> elements;
  each_element(array, [&](const JsonValue& element) { elements.push_back(element); });
  return elements;
}

/// The text inside the outermost brackets of "GenericList[...]" or "Tuple[...]"; empty if there are
/// none.
std::string_view inside_brackets(std::string_view type) {
  const std::size_t open = type.find('[');
  const std::size_t close = type.rfind(']');
  return open == std::string_view::npos || close == std::string_view::npos || close <= open
             ? std::string_view()
             : type.substr(open + 1, close - open - 1);
}

/// Removes the text up to the next comma outside all brackets from `types` and returns it.
std::string_view take_type(std::string_view& types) {
  int depth = 0;
  std::size_t at = 0;
  for (; at < types.size(); ++at) {
    const char c = types[at];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == ',' && depth <= 0) break;
  }
  const std::string_view taken = types.substr(0, at);
  types.remove_prefix(std::min(types.size(), at + 1));
  return taken;
}

/// Returns "float" for "Tensor(float)", and an empty text for a tensor without data.
std::string_view element_type(std::string_view type) {
  const std::size_t open = type.find(kTensor);
  const std::size_t close = type.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  const std::string_view inner = type.substr(open + kTensor.size(), close - open - kTensor.size());
  return inner.substr(0, 7) == "nullptr" ? std::string_view() : inner;
}

}  // namespace

bool has_tensors(std::string_view type) { return type.find(kTensor) != std::string_view::npos; }

std::int16_t device_ordinal(std::string_view device) {
  if (device.empty() || device.substr(0, 3) == "cpu" || device.substr(0, 4) == "meta") return -1;
  const std::size_t colon = device.rfind(':');
  if (colon == std::string_view::npos) return 0;
  int ordinal = 0;
  for (const char c : device.substr(colon + 1)) {
    if (c < '0' || c > '9') break;
    ordinal = std::min(ordinal * 10 + (c - '0'), int{std::numeric_limits<std::int16_t>::max()});
  }
  return static_cast<std::int16_t>(ordinal);
}

void ExecutionTensors::add(std::uint32_t host, const Arguments& arguments, bool is_output) {
  if (arguments.types.kind != ValueKind::array || !has_tensors(arguments.types.view())) return;
  const std::vector<JsonValue> shapes = elements_of(arguments.shapes);
  const std::vector<JsonValue> types = elements_of(arguments.types);
  std::size_t argument = 0;
  each_element(arguments.values, [&](const JsonValue& value) {
    const std::size_t i = argument++;
    if (i >= types.size() || !has_tensors(types[i].view())) return;
    constexpr std::size_t kMax = std::numeric_limits<std::uint16_t>::max();
    add_value(value, i < shapes.size() ? shapes[i] : JsonValue{}, types[i].view(),
              {host, static_cast<std::uint16_t>(std::min(i, kMax)), is_output});
  });
}

void ExecutionTensors::add_value(const JsonValue& value, const JsonValue& shape,
                                 std::string_view type, const OpArgument& owner) {
  if (type.substr(0, kTensor.size()) == kTensor) {
    if (!element_type(type).empty()) add_tensor(value, shape, type, owner);
    return;
  }
  std::string_view types = inside_brackets(type);
  const std::vector<JsonValue> shapes = elements_of(shape);
  std::size_t i = 0;
  each_element(value, [&](const JsonValue& element) {
    const std::string_view of_element = take_type(types);
    const JsonValue of_shape = i < shapes.size() ? shapes[i] : JsonValue{};
    ++i;
    if (has_tensors(of_element)) add_value(element, of_shape, of_element, owner);
  });
}

void ExecutionTensors::add_tensor(const JsonValue& value, const JsonValue& shape,
                                  std::string_view type, const OpArgument& owner) {
  std::array<std::int64_t, 5> numbers{};
  std::string_view device;
  std::size_t count = 0;
  each_element(value, [&](const JsonValue& element) {
    if (count < numbers.size()) numbers[count] = to_integer(element);
    if (count == numbers.size()) device = element.view();
    ++count;
  });
  const auto [tensor, storage, offset, elements, element_bytes] = numbers;
  TensorRecord record;
  const bool possible = count >= numbers.size() && offset >= 0 && elements >= 0 &&
                        element_bytes >= 0 &&
                        !__builtin_mul_overflow(offset, element_bytes, &record.offset_bytes) &&
                        !__builtin_mul_overflow(elements, element_bytes, &record.bytes);
  if (!possible) {
    if (impossible_++ == 0) impossible_example_ = std::string(value.view().substr(0, 100));
    return;
  }
  record.tensor = tensor;
  record.storage = storage;
  record.host = owner.host;
  record.type = names_.intern(element_type(type));
  record.shape = names_.intern(shape.view());
  record.argument = owner.argument;
  record.device = device_ordinal(device);
  record.is_output = owner.is_output;
  trace_.tensors.push_back(record);
}

std::string ExecutionTensors::concrete_values(const Arguments& arguments) {
  if (arguments.values.kind != ValueKind::array) return {};
  const std::vector<JsonValue> types = elements_of(arguments.types);
  std::string text = "[";
  std::size_t i = 0;
  each_element(arguments.values, [&](const JsonValue& value) {
    const bool is_tensor = i < types.size() && has_tensors(types[i].view());
    text += (i++ == 0 ? "" : ", ");
    text += is_tensor ? "\"\"" : json_text(value);
  });
  return text + "]";
}

void ExecutionTensors::write_notes() {
  if (impossible_ == 0) return;
  trace_.notes.add(Severity::warning, "tensors of an impossible size, left out",
                   impossible_example_, impossible_);
}

std::string json_from_python(std::string_view text) {
  std::string json;
  json.reserve(text.size());
  char quote = 0;  // Quote of the open text.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != 0 && i + 1 < text.size()) {
      const char escaped = text[++i];
      if (escaped != '\'') json += '\\';
      json += escaped;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      json += '"';
    } else if (quote == c && c != 0) {
      quote = 0;
      json += '"';
    } else if (c == '"') {
      json += "\\\"";
    } else {
      json += c;
    }
  }
  return json;
}

}  // namespace foretrace
