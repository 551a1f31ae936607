// Replays the recorded requests to an allocator, and compares the levels.
//
// Actions of a program other than requests are not recorded everywhere. So both replays take two
// things from the recording: where the driver put a segment (a block allocated when reserved memory
// grew is its first), and that the cache was freed (reserved memory fell), as by
// torch.cuda.empty_cache(). Everything else, including when reserved memory grows, follows the
// allocator's rules.

#include "foretrace/question/memory_check.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "analysis/memory/memory_layout.h"
#include "base/json_text.h"
#include "foretrace/allocator.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kLastSoundAddress = std::uint64_t{1} << 62;
constexpr std::int64_t kMaxRecorded = std::int64_t{1} << 50;

bool is_sound(const MemoryRecord& record) {
  return record.device >= 0 && record.address > 0 && record.address < kLastSoundAddress &&
         std::abs(record.bytes) < kMaxRecorded && record.total_allocated < kMaxRecorded &&
         record.total_reserved < kMaxRecorded;
}

/// The recorded settings of the allocator; the defaults if unknown.
AllocatorSettings recorded_settings(const Trace& trace) {
  AllocatorSettings settings;
  const auto found = trace.metadata.find("allocator_settings");
  if (found == trace.metadata.end()) return settings;
  const nlohmann::json json = try_parse_json<nlohmann::json>(found->second);
  if (!json.is_object()) return settings;
  const auto integer_of = [&](const nlohmann::json& object, const char* name) {
    const auto at = object.find(name);
    return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : -1;
  };
  settings.max_split_size = Bytes{std::max<std::int64_t>(integer_of(json, "max_split_size"), 0)};
  settings.expandable_segments = json.value("expandable_segments", nlohmann::json()) == true;
  const auto divisions = json.find("roundup_power2_divisions");
  if (divisions == json.end() || !divisions->is_object()) return settings;
  std::string list;
  for (std::int64_t size = 1; size <= (1 << 15); size *= 2) {
    const std::int64_t parts = integer_of(*divisions, std::to_string(size).c_str());
    if (parts < 0 || (parts & (parts - 1)) != 0) continue;
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", size, parts);
  }
  if (!list.empty()) settings.roundup_power2_divisions = fmt::format("[{}]", list);
  return settings;
}

void examine(const Trace& trace, RecordedMemory& memory) {
  std::stable_sort(memory.records.begin(), memory.records.end(),
                   [](const auto* a, const auto* b) { return a->time_ns < b->time_ns; });
  bool completed = false, requested = false;
  for (const MemoryRecord* record : memory.records) {
    completed |= record->action == MemoryAction::block && record->bytes < 0;
    requested |= record->action == MemoryAction::free_requested;
    memory.is_snapshot |= record->action != MemoryAction::block;
    memory.settings.expandable_segments |= record->action == MemoryAction::segment_map;
  }
  for (const MemorySegment& segment : trace.segments) {
    if (segment.device == memory.device) memory.is_snapshot = true;
  }
  memory.requests_free = requested && !completed;
  const MemoryRecord& first = *memory.records.front();
  const bool changes = memory.makes(first) || memory.frees(first);
  memory.allocated = first.total_allocated - (changes && !memory.is_snapshot ? first.bytes : 0);
  memory.reserved = first.total_reserved - reserved_change(first);
}

/// The memory records of each device; devices without recorded levels are left out.
std::vector<RecordedMemory> devices_of(const Trace& trace) {
  std::map<std::int32_t, RecordedMemory> devices;
  const AllocatorSettings settings = recorded_settings(trace);
  for (const MemoryRecord& record : trace.memory) {
    if (!is_sound(record) || record.total_allocated < 0) continue;
    RecordedMemory& memory = devices[record.device];
    memory.device = record.device;
    memory.settings = settings;
    memory.records.push_back(&record);
  }
  std::vector<RecordedMemory> all;
  for (auto& [device, memory] : devices) {
    examine(trace, memory);
    const bool has_reserved =
        std::any_of(memory.records.begin(), memory.records.end(),
                    [](const MemoryRecord* record) { return record->total_reserved >= 0; });
    if (has_reserved) all.push_back(std::move(memory));
  }
  return all;
}

/// Accumulates the error of one level.
class LevelComparison {
 public:
  void compare(std::int64_t recorded, std::int64_t replayed) {
    const std::int64_t off = std::abs(replayed - recorded);
    sum_ += static_cast<double>(off);
    error_.most = std::max(error_.most, Bytes{off});
    error_.recorded_peak = std::max(error_.recorded_peak, Bytes{recorded});
    error_.replayed_peak = std::max(error_.replayed_peak, Bytes{replayed});
    ++error_.compared;
  }
  LevelError finish() const {
    LevelError error = error_;
    if (error.compared > 0) error.mean = sum_ / static_cast<double>(error.compared);
    const auto recorded = static_cast<double>(error.recorded_peak.count);
    if (recorded > 0) error.peak = static_cast<double>(error.replayed_peak.count) / recorded - 1;
    return error;
  }

 private:
  LevelError error_;
  double sum_ = 0;
};

class RecordReplay {
 public:
  explicit RecordReplay(const RecordedMemory& memory)
      : memory_(memory), allocator_(memory.settings), early_(blocks_from_before(memory)) {}

  MemoryReplay cold() {
    std::int64_t known = 0;
    for (const EarlyBlock& block : early_) known += block.bytes;
    const std::int64_t rest = memory_.allocated - known;
    if (rest > 0) {
      allocator_.adopt({.address = kLastSoundAddress,
                        .bytes = rest,
                        .stream = kUnusedStream,
                        .blocks = {{kLastSoundAddress, rest, rest, kFirstOtherHandle, false}}});
    }
    for (std::size_t i = 0; i < early_.size(); ++i) {
      allocator_.malloc(static_cast<std::int64_t>(i), Bytes{early_[i].bytes},
                        stream_of(early_[i].stream));
    }
    return run();
  }

  MemoryReplay warm(const std::vector<AllocatorSegment>& layout) {
    for (const AllocatorSegment& segment : layout) allocator_.adopt(segment);
    return run();
  }

 private:
  MemoryReplay run() {
    for (std::size_t i = 0; i < early_.size(); ++i) {
      handles_[early_[i].address] = static_cast<std::int64_t>(i);
    }
    next_ = static_cast<std::int64_t>(early_.size());
    reserved_ = memory_.reserved;
    for (const MemoryRecord* record : memory_.records) replay(*record);
    replay_.allocated = allocated_.finish();
    replay_.reserved = reserved_levels_.finish();
    return replay_;
  }

  void replay(const MemoryRecord& record) {
    follow_driver(record);
    if (memory_.makes(record)) make(record);
    if (memory_.frees(record)) free(record);
    if (record.action != MemoryAction::block) return;
    allocated_.compare(record.total_allocated, allocator_.levels().allocated);
    if (record.total_reserved >= 0) {
      reserved_levels_.compare(record.total_reserved, allocator_.levels().reserved);
    }
  }

  void follow_driver(const MemoryRecord& record) {
    if (record.total_reserved < 0) return;
    const std::int64_t grown = record.total_reserved - reserved_;
    reserved_ = record.total_reserved;
    if (grown > 0) allocator_.place_next_segment(record.address);
    if (grown < 0 && allocator_.levels().reserved > reserved_) allocator_.empty_cache();
  }

  void make(const MemoryRecord& record) {
    free(record);  // The free of an earlier block at this address may not be recorded.
    const std::int64_t handle = next_++;
    handles_[record.address] = handle;
    allocator_.malloc(handle, Bytes{record.bytes}, stream_of(record.stream));
    allocator_.place_next_segment(0);
    ++replay_.compared_addresses;
    if (allocator_.address(handle) == record.address) ++replay_.same_address;
  }

  void free(const MemoryRecord& record) {
    const auto found = handles_.find(record.address);
    if (found == handles_.end()) return;
    allocator_.free(found->second);
    handles_.erase(found);
  }

  const RecordedMemory& memory_;
  CachingAllocator allocator_;
  std::vector<EarlyBlock> early_;
  std::unordered_map<std::uint64_t, std::int64_t> handles_;  ///< By recorded address.
  std::int64_t next_ = 0;
  std::int64_t reserved_ = 0;
  LevelComparison allocated_, reserved_levels_;
  MemoryReplay replay_;
};

}  // namespace

std::vector<MemoryCheck> check_memory(const Trace& trace) {
  std::vector<MemoryCheck> checks;
  for (const RecordedMemory& memory : devices_of(trace)) {
    MemoryCheck check;
    check.device = memory.device;
    check.events = std::count_if(
        memory.records.begin(), memory.records.end(),
        [&](const MemoryRecord* record) { return memory.makes(*record) || memory.frees(*record); });
    check.freed_unmade = static_cast<std::int64_t>(blocks_from_before(memory).size());
    check.initial_allocated = Bytes{memory.allocated};
    check.initial_reserved = Bytes{memory.reserved};
    check.sizes_are_rounded = !memory.is_snapshot;
    check.cold = RecordReplay(memory).cold();
    check.warm = RecordReplay(memory).warm(layout_before(trace, memory));
    checks.push_back(check);
  }
  return checks;
}

}  // namespace foretrace
