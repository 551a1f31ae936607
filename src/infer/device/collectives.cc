// Collectives. A collective runs on its own stream and waits for what its thread launched before
// it. This holds in every framework, even if the wait did not delay it in the recording. The update
// waits for the collectives before it. The duration of a collective is arrival skew (other ranks
// are late) plus transfer. One rank alone cannot separate them, so the excess over the fastest
// collective of the same kind and size is reported as time that only other ranks explain.

#include <algorithm>
#include <map>

#include "infer/passes.h"

namespace foretrace::infer_detail {

void find_collective_waits(const Records& records, EventWaits& waits) {
  std::vector<std::uint32_t> last_work(records.trace.threads.size(), kNone);
  std::uint32_t last_collective = kNone;
  std::int32_t updated_step = -2;
  for (const std::uint32_t i : records.by_launch) {
    const DeviceEvent& event = records.events[i];
    const Call& call = *records.call_of(event);
    const auto add = [&](std::uint32_t before, Rule why) {
      if (before == kNone || records.events[before].stream == event.stream) return;
      if (records.events[before].finish > event.start + records.tolerance) return;
      waits.push_back({i, before, Provenance::inferred, why});
    };
    if (event.kind == TaskKind::collective) {
      add(last_work[call.thread], Rule::collective_input);
      last_collective = i;
      continue;
    }
    last_work[call.thread] = i;
    if (event.phase == Phase::update && event.step != updated_step) {
      updated_step = event.step;
      add(last_collective, Rule::update_after_collectives);
    }
  }
}

void measure_arrival_skew(const Records& records, Inference& result) {
  std::map<std::pair<NameId, std::int64_t>, std::vector<const DeviceEvent*>> same_kind;
  for (const DeviceEvent& event : records.events) {
    if (event.kind != TaskKind::collective) continue;
    const DeviceRecord& record = records.trace.devices[event.record];
    const std::int64_t size =
        record.details == kNone ? 0 : records.trace.collectives[record.details].in_elements;
    same_kind[{record.name, size}].push_back(&event);
  }
  if (records.trace.world_size <= 1) return;
  Nanoseconds& peers = result.graph.unexplained().peers;
  const auto duration = [](const DeviceEvent* event) { return event->finish - event->start; };
  for (const auto& [key, events] : same_kind) {
    std::int64_t least = duration(events.front());
    for (const DeviceEvent* event : events) least = std::min(least, duration(event));
    for (const DeviceEvent* event : events) {
      const Nanoseconds skew(duration(event) - least);
      if (skew <= 0ns) continue;
      peers += skew;
      result.open.push_back({.task = event->task, .time = skew, .of_peers = true});
    }
  }
  if (!same_kind.empty()) {
    result.assumptions.emplace_back(kCollectivesKeepTime);
  }
}

namespace {

/// Bytes of an element, by c10d's name of its type; 0 if unknown.
std::int64_t element_bytes(std::string_view type) {
  static constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
      {"Double", 8}, {"Long", 8}, {"Float", 4}, {"Int", 4},  {"BFloat16", 2},
      {"Half", 2},   {"Byte", 1}, {"Char", 1},  {"Bool", 1}, {"ComplexFloat", 8},
  };
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return type.starts_with("Float8") ? 1 : 0;
}

/// Size of the whole buffer as nccl-tests counts it: the larger of input and output; 0 if the
/// recording claims more than any device holds.
Bytes bytes_of(const CollectiveDetails& details, std::string_view type) {
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 44;
  const std::int64_t elements = std::max(details.in_elements, details.out_elements);
  if (elements < 0 || elements > kMaxElements) return {};
  return {elements * element_bytes(type)};
}

}  // namespace

void list_collectives(const Records& records, Inference& result) {
  const Trace& trace = records.trace;
  Names& names = result.graph.names();
  for (const DeviceEvent& event : records.events) {
    if (event.kind != TaskKind::collective || event.task == kNoTask) continue;
    const DeviceRecord& record = trace.devices[event.record];
    const std::string_view kernel = trace.names[record.name];
    RecordedCollective& collective = result.graph.collectives().emplace_back();
    collective.task = event.task;
    if (record.details != kNone) {
      const CollectiveDetails& details = trace.collectives[record.details];
      collective.operation = details.collective, collective.type = details.dtype;
      collective.group = details.group, collective.members = details.ranks;
      collective.elements = details.in_elements, collective.sequence = details.sequence;
      collective.group_size = details.group_size;
      collective.bytes = bytes_of(details, trace.names[details.dtype]);
    }
    if (collective.operation == NameId{})
      collective.operation = names.intern(kernel.substr(0, kernel.find_first_of("(<")));
  }
  const auto start = [&](const RecordedCollective& collective) {
    return std::pair(result.recorded.start[index(collective.task)], collective.task);
  };
  std::vector<RecordedCollective>& all = result.graph.collectives();
  std::sort(all.begin(), all.end(),
            [&](const auto& a, const auto& b) { return start(a) < start(b); });
}

}  // namespace foretrace::infer_detail
