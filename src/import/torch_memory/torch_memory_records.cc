// Reads the segments, blocks and events of a memory snapshot, each of which is a dict.

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <limits>

#include "import/torch_memory/torch_memory.h"

namespace foretrace {

namespace {

struct ActionName {
  std::string_view text;
  MemoryAction action;
};

constexpr std::array kActions{
    ActionName{"alloc", MemoryAction::block},
    ActionName{"free_completed", MemoryAction::block},
    ActionName{"free_requested", MemoryAction::free_requested},
    ActionName{"free", MemoryAction::block},
    ActionName{"segment_alloc", MemoryAction::segment_alloc},
    ActionName{"segment_free", MemoryAction::segment_free},
    ActionName{"segment_map", MemoryAction::segment_map},
    ActionName{"segment_unmap", MemoryAction::segment_unmap},
    ActionName{"oom", MemoryAction::out_of_memory},
    ActionName{"snapshot", MemoryAction::snapshot},
};

/// Whether an event frees memory.
bool gives_back(std::string_view action) {
  return action == "free_completed" || action == "free_requested" || action == "free" ||
         action == "segment_free" || action == "segment_unmap";
}

bool block_state(std::string_view text, BlockState& state) {
  if (text == "active_allocated" || text == "allocated") {
    state = BlockState::allocated;
  } else if (text == "active_pending_free" || text == "active_awaiting_free") {
    state = BlockState::pending_free;
  } else if (text == "inactive") {
    state = BlockState::inactive;
  } else {
    return false;
  }
  return true;
}

std::string element(std::string_view list, std::size_t at) {
  return fmt::format("{}[{}]", list, at);
}

constexpr std::int64_t kMaxDevice = std::numeric_limits<std::int16_t>::max();

}  // namespace

void SnapshotReader::read_segments(PlainValue segments) {
  if (segments.is_none() || !is_new_list(segments, "segments")) return;
  std::size_t at = 0;
  for (const PlainValue segment : data_.items(segments))
    read_segment(segment, element("segments", at++));
}

void SnapshotReader::read_segment(PlainValue value, const std::string& place) {
  if (!value.is_dict()) return count(Oddity::no_dict, place);
  const auto address = data_.integer(data_.find(value, "address"));
  const std::int64_t bytes = integer(value, "total_size", -1);
  const std::int64_t device = integer(value, "device", 0);
  if (!address) return count(Oddity::no_address, place);
  if (bytes < 0 || !sizes_.accept(bytes)) return count(Oddity::bad_size, place);
  if (device < 0 || device > kMaxDevice) return count(Oddity::bad_device, place);
  MemorySegment segment;
  segment.address = static_cast<std::uint64_t>(*address);
  segment.bytes = bytes;
  segment.device = static_cast<std::int16_t>(device);
  segment.stream = stream(segment.device, integer(value, "stream", 0));
  segment.stack = stacks_.stack(data_.find(value, "frames"));
  segment.is_large = data_.text(data_.find(value, "segment_type")) == "large";
  segment.is_expandable = integer(value, "is_expandable", 0) != 0;
  const PlainValue pool = data_.find(value, "segment_pool_id");
  if (!pool.is_none()) segment.pool = trace_.names.intern(to_json_text(data_, pool, 256));
  trace_.segments.push_back(segment);
  const PlainValue blocks = data_.find(value, "blocks");
  if (is_new_list(blocks, place))
    read_blocks(blocks, static_cast<std::uint32_t>(trace_.segments.size() - 1), place);
}

void SnapshotReader::read_blocks(PlainValue blocks, std::uint32_t segment,
                                 const std::string& place) {
  std::uint64_t expected = trace_.segments[segment].address;
  std::int64_t covered = 0;
  std::size_t at = 0;
  for (const PlainValue value : data_.items(blocks)) {
    if (trace_.blocks.size() >= data_.container_count()) return count(Oddity::repeated, place);
    MemoryBlock block;
    block.segment = segment;
    if (!read_block(value, expected, block, fmt::format("{}.blocks[{}]", place, at++))) continue;
    expected = block.address + static_cast<std::uint64_t>(block.bytes);
    covered += block.bytes;
    trace_.blocks.push_back(block);
  }
  if (covered != trace_.segments[segment].bytes) count(Oddity::uncovered, place);
}

/// Old versions omit the address, which follows from the sizes of the blocks before, and store
/// frames and requested sizes in a list of the block's uses, the current use first.
bool SnapshotReader::read_block(PlainValue value, std::uint64_t expected, MemoryBlock& block,
                                const std::string& place) {
  if (!value.is_dict()) return count(Oddity::no_dict, place), false;
  block.bytes = integer(value, "size", -1);
  if (block.bytes < 0 || !sizes_.accept(block.bytes)) return count(Oddity::bad_size, place), false;
  if (!block_state(data_.text(data_.find(value, "state")), block.state))
    return count(Oddity::unknown_state, place), false;
  const auto address = data_.integer(data_.find(value, "address"));
  block.address = address ? static_cast<std::uint64_t>(*address) : expected;
  const auto uses = data_.items(data_.find(value, "history"));
  const PlainValue use = uses.empty() ? PlainValue{} : uses.front();
  const std::int64_t real = integer(use, "real_size", block.bytes);
  block.requested_bytes = integer(value, "requested_size", real);
  if (block.requested_bytes < 0 || !sizes_.accept(block.requested_bytes))
    return count(Oddity::bad_size, place), false;
  const PlainValue frames = data_.find(value, "frames");
  block.stack = stacks_.stack(frames.is_none() ? data_.find(use, "frames") : frames);
  return true;
}

void SnapshotReader::read_histories(PlainValue traces) {
  if (traces.is_none() || !is_new_list(traces, "device_traces")) return;
  std::int64_t device = 0;
  for (const PlainValue events : data_.items(traces)) {
    const std::string place = element("device_traces", static_cast<std::size_t>(device));
    if (device > kMaxDevice) {
      count(Oddity::bad_device, place);
    } else if (events.is_list() && is_new_list(events, place)) {
      read_history(events, static_cast<std::int32_t>(device));
    }
    ++device;
  }
}

void SnapshotReader::read_history(PlainValue events, std::int32_t device) {
  DeviceHistory history{.device = device, .first = trace_.memory.size(), .last = 0};
  last_time_ns_ = 0;
  std::size_t at = 0;
  const std::string list = element("device_traces", static_cast<std::size_t>(device));
  for (const PlainValue event : data_.items(events)) {
    MemoryRecord record;
    record.device = static_cast<std::int16_t>(device);
    const std::string place = element(list, at++);
    if (trace_.memory.size() >= data_.container_count()) {
      count(Oddity::repeated, place);
      break;
    }
    if (read_event(event, record, place)) trace_.memory.push_back(record);
  }
  history.last = trace_.memory.size();
  histories_.push_back(history);
}

bool SnapshotReader::read_event(PlainValue event, MemoryRecord& record, const std::string& place) {
  if (!event.is_dict()) return count(Oddity::no_dict, place), false;
  const std::string_view action = data_.text(data_.find(event, "action"));
  const auto known = std::find_if(kActions.begin(), kActions.end(),
                                  [&](const ActionName& word) { return word.text == action; });
  if (known == kActions.end()) return count(Oddity::unknown_action, place), false;
  record.action = known->action;
  const bool is_oom = record.action == MemoryAction::out_of_memory;
  const auto address = data_.integer(data_.find(event, is_oom ? "device_free" : "addr"));
  if (!address && !is_oom && record.action != MemoryAction::snapshot)
    return count(Oddity::no_address, place), false;
  record.address = static_cast<std::uint64_t>(address.value_or(0));
  record.bytes = integer(event, "size", -1);
  if (record.bytes < 0 || !sizes_.accept(record.bytes))
    return count(Oddity::bad_size, place), false;
  if (gives_back(action)) record.bytes = -record.bytes;
  record.stream = stream(record.device, integer(event, "stream", 0));
  record.stack = stacks_.stack(data_.find(event, "frames"));
  if (data_.find(event, "time_us").is_none()) {
    ++untimed_;
  } else if (read_time(event, last_time_ns_, place)) {
    ++timed_;
  }
  record.time_ns = last_time_ns_;
  return true;
}

}  // namespace foretrace
