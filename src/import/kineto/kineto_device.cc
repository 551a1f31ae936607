// Makes records of device streams.

#include <algorithm>
#include <limits>

#include "base/contains.h"
#include "base/wide.h"
#include "import/common/cuda_words.h"
#include "import/kineto/kineto_trace.h"

namespace foretrace {

namespace {

/// The numbers of a list such as "[128, 2, 1]", each at most 2^32 - 1; zeros if the field is not
/// such a list. Numbers after the third one are factors of it.
LaunchShapes::Sizes sizes_of(const KinetoEvent& event, Field field) {
  if (!event.has(field) || event[field].kind != ValueKind::array) return {};
  constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();
  LaunchShapes::Sizes sizes = {1, 1, 1};
  std::size_t at = 0;
  std::int64_t factor = 0;
  bool in_number = false;
  for (const char c : event[field].view()) {
    if (c >= '0' && c <= '9') {
      factor = std::min(kMax, factor * 10 + (c - '0'));
      in_number = true;
    } else if (in_number) {
      std::int64_t& size = sizes[std::min<std::size_t>(at++, 2)];
      size = factor == 0 ? 0 : std::min(size, kMax / factor + 1) * factor;
      size = std::min(size, kMax);
      factor = 0;
      in_number = false;
    }
  }
  return at == 0 ? LaunchShapes::Sizes{} : sizes;
}

/// PyTorch's profiler writes the shared memory of a block in one sum; our own exporter adds how
/// much of it is static.
void describe_launch(KinetoTrace& to, const KinetoEvent& event, DeviceRecord& record) {
  LaunchShape rest;
  rest.registers = to_uint32(event.integer(Field::registers, 0));
  rest.static_shared = to_uint32(event.integer(Field::static_shared, 0));
  const std::int64_t shared = std::max<std::int64_t>(event.integer(Field::shared_memory, 0), 0);
  rest.dynamic_shared = to_uint32(shared - std::int64_t{rest.static_shared});
  to.launches.set(record, sizes_of(event, Field::grid), sizes_of(event, Field::block), rest);
}

SyncKind sync_kind(std::string_view text) {
  if (text == "Stream Sync" || text == "Stream Synchronize") return SyncKind::stream;
  if (text == "Event Sync" || text == "Event Synchronize") return SyncKind::event;
  if (text == "Context Sync" || text == "Context Synchronize" || text == "Device Sync")
    return SyncKind::context;
  if (text == "Stream Wait Event") return SyncKind::stream_wait_event;
  return SyncKind::unknown;
}

void describe_copy(const KinetoEvent& event, DeviceRecord& record) {
  record.bytes =
      std::max<std::int64_t>(0, event.integer(Field::bytes, event.integer(Field::size, 0)));
  if (record.kind != DeviceKind::copy) return;
  const std::string_view text = event.text(Field::name);
  record.direction = copy_direction(text);
  if (record.direction == CopyDirection::none)
    record.direction = copy_direction(event.text(Field::kind));
  const bool two_devices =
      event.has(Field::from_device) && event.has(Field::to_device) &&
      event.integer(Field::from_device, 0) != event.integer(Field::to_device, 0);
  if (record.direction == CopyDirection::on_device && two_devices)
    record.direction = CopyDirection::peer;
  record.pinned_host = contains(text, "Pinned");
}

std::uint32_t collective_details(KinetoTrace& to, const KinetoEvent& event) {
  CollectiveDetails details;
  details.collective = to.name(event, Field::collective);
  details.dtype = to.name(event, Field::dtype);
  details.group = to.name(event, Field::group);
  details.ranks = to.name(event, Field::ranks);
  details.in_elements = event.integer(Field::in_elements, 0);
  details.out_elements = event.integer(Field::out_elements, 0);
  details.group_size = to_int32(event.integer(Field::group_size, 0));
  details.sequence = event.integer(Field::collective_sequence, -1);
  const auto number = static_cast<std::uint32_t>(to.trace.collectives.size());
  to.trace.collectives.push_back(details);
  if (event.has(Field::peer)) to.messages.emplace_back(number, event.integer(Field::peer, -1));
  return number;
}

}  // namespace

void add_device(KinetoTrace& to, const KinetoEvent& event, DeviceKind kind, KinetoTimes times) {
  DeviceRecord record;
  record.start_ns = times.start;
  record.duration_ns = times.duration;
  record.kind = kind;
  record.name = to.name(event, Field::name);
  record.stream = to.stream_of(event);
  record.correlation = static_cast<std::uint32_t>(event.integer(Field::correlation, 0));
  record.external = static_cast<std::uint32_t>(event.integer(Field::external, 0));
  record.graph_node = static_cast<std::uint64_t>(event.integer(Field::graph_node, 0));
  if (kind == DeviceKind::kernel) {
    describe_launch(to, event, record);
    if (event.has(Field::collective)) record.details = collective_details(to, event);
  } else if (kind != DeviceKind::annotation) {
    describe_copy(event, record);
  }
  to.trace.devices.push_back(record);
}

void add_sync(KinetoTrace& to, const KinetoEvent& event, KinetoTimes times) {
  SyncRecord record;
  record.start_ns = times.start;
  record.duration_ns = times.duration;
  const Field field = event.has(Field::sync_kind) ? Field::sync_kind : Field::name;
  record.kind = sync_kind(event.text(field));
  record.correlation = static_cast<std::uint32_t>(event.integer(Field::correlation, 0));
  const std::int64_t device = to.device_of(event);
  // Some versions of the profiler write CUPTI's number for "no stream" instead of -1.
  constexpr std::int64_t kNoStream = 0xffffffff;
  const std::int64_t stream = event.integer(Field::stream, -1);
  if (stream >= 0 && stream != kNoStream) record.stream = to.lanes.stream(device, stream);
  const std::int64_t other = event.integer(Field::wait_on_stream, -1);
  if (other >= 0 && other != kNoStream) record.wait_on_stream = to.lanes.stream(device, other);
  const std::int64_t recorded_by = event.integer(Field::wait_on_correlation, -1);
  if (recorded_by > 0) record.wait_on_correlation = static_cast<std::uint32_t>(recorded_by);
  record.event = static_cast<std::uint32_t>(event.integer(Field::wait_on_event, 0));
  to.trace.syncs.push_back(record);
}

}  // namespace foretrace
