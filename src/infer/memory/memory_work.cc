// Finds which op launched which work, in the launch order of each thread; and computes the bytes of
// an op's tensor arguments.

#include <algorithm>
#include <charconv>

#include "infer/device/op_shapes.h"
#include "infer/memory/memory.h"

namespace foretrace::infer_detail {

LaunchedWork::LaunchedWork(const Records& records, const HostTime& host) {
  works_.resize(host.segments.size());
  launches_.resize(host.segments.size());
  std::vector<std::uint32_t> last_op(host.segments.size(), kNone);
  for (const std::uint32_t event : records.by_launch) {
    const Call& call = records.calls[records.events[event].call];
    if (call.launch_task == kNoTask) continue;
    std::vector<OpWork>& works = works_[call.thread];
    std::vector<Launch>& launches = launches_[call.thread];
    const auto number = static_cast<std::uint32_t>(launches.size());
    const std::uint32_t op = call.context == kNone ? kNone : host.contexts[call.context].op;
    if (works.empty() || op == kNone || op != last_op[call.thread]) {
      works.push_back({.time = call.start, .context = call.context, .first = number});
      last_op[call.thread] = op;
    }
    launches.push_back({call.start, event, static_cast<std::uint32_t>(works.size() - 1)});
    works.back().last = number + 1;
  }
}

std::uint32_t LaunchedWork::first_launch(std::uint16_t thread, std::int64_t time) const {
  const std::vector<Launch>& launches = launches_[thread];
  const auto found = std::partition_point(launches.begin(), launches.end(),
                                          [&](const Launch& launch) { return launch.time < time; });
  return static_cast<std::uint32_t>(found - launches.begin());
}

namespace {

struct TypeSize {
  std::string_view name;
  std::int64_t bytes;
};

/// Bytes of an element type, by the name in PyTorch's profiler; 0 if unknown.
std::int64_t size_of(std::string_view type) {
  if (type.starts_with("c10::")) type.remove_prefix(5);
  constexpr TypeSize kSizes[] = {
      {"float", 4},         {"double", 8},         {"Half", 2},
      {"BFloat16", 2},      {"long int", 8},       {"long", 8},
      {"int", 4},           {"short int", 2},      {"short", 2},
      {"char", 1},          {"signed char", 1},    {"unsigned char", 1},
      {"bool", 1},          {"complex<float>", 8}, {"complex<double>", 16},
      {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
  for (const TypeSize& size : kSizes) {
    if (size.name == type) return size.bytes;
  }
  return 0;
}

/// Returns the number of elements of each shape in a JSON text such as [[32, 3], [], 5]; 0 for
/// anything but a list of numbers. An empty list is a number or an absent tensor.
std::vector<std::int64_t> read_element_counts(std::string_view text) {
  constexpr std::int64_t kMax = std::int64_t{1} << 42;  // No tensor has more elements; chosen.
  std::vector<std::int64_t> counts;
  int depth = 0;
  bool has_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[') {
      if (++depth == 2) counts.push_back(1), has_number = false;
      if (depth == 3) counts.back() = 0;  // A list of tensors.
    } else if (c == ']') {
      if (depth-- == 2 && !has_number) counts.back() = 0;
    } else if (c >= '0' && c <= '9' && (depth == 1 || depth == 2)) {
      std::int64_t value = 0;
      const auto read = std::from_chars(text.data() + i, text.data() + text.size(), value);
      if (read.ec != std::errc{}) return {};
      i = static_cast<std::size_t>(read.ptr - text.data()) - 1;
      if (depth == 1) {
        counts.push_back(0);
        continue;
      }
      has_number = true;
      const bool fits = value == 0 || counts.back() <= kMax / value;
      counts.back() = fits ? counts.back() * value : 0;
    }
  }
  return counts;
}

}  // namespace

std::vector<std::int64_t> input_bytes(const Trace& trace, std::uint32_t op) {
  const std::uint32_t at = trace.hosts[op].details;
  if (at == kNone) return {};
  const OpDetails& details = trace.op_details[at];
  if (details.shapes == NameId{} || details.types == NameId{}) return {};
  std::vector<std::int64_t> bytes = read_element_counts(trace.names[details.shapes]);
  const std::vector<std::string_view> types = read_texts(trace.names[details.types]);
  if (types.size() != bytes.size()) return {};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] *= size_of(types[i]);
  return bytes;
}

}  // namespace foretrace::infer_detail
