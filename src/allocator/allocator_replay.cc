// Runs the caching allocator with the requests of a timeline, one device at a time.
//
// It starts empty. Memory in use when the recording began is put in first, because no later request
// can use that room:
//
//   1. Memory in use that belongs to no recorded block, as most parameters and optimizer states do:
//      one segment of that size, filled by one block. So it adds the same to allocated and
//      reserved, and offers no room to later requests that the real cache may not have had.
//   2. Blocks that the recording frees or reads, but does not make: requested one by one.
//
// The state of the real allocator's cache when the recording began is unknown; the replay asks the
// driver for memory when it is needed. So reserved memory may start below the real value, and
// reaches it within the first step.

#include <algorithm>
#include <map>

#include "foretrace/allocator.h"

namespace foretrace {
namespace {

/// Returns until when other streams use each block; Nanoseconds::min() if none does.
std::vector<Nanoseconds> busy_on_other_streams(const Graph& graph, const Timeline& timeline) {
  std::vector<Nanoseconds> busy(graph.allocations().size(), Nanoseconds::min());
  const auto is_on_device = [&](LaneId lane) {
    const LaneKind kind = graph.lane(lane).kind;
    return kind == LaneKind::stream || kind == LaneKind::copy_engine;
  };
  for (const Access& access : graph.accesses()) {
    if (access.task == kNoTask || graph.removed(access.task)) continue;
    const LaneId block_stream = graph.allocations()[access.allocation].stream;
    const LaneId lane = graph.lane_of(access.task);
    if (block_stream == kNoLane || lane == block_stream || !is_on_device(lane)) continue;
    Nanoseconds& until = busy[access.allocation];
    until = std::max(until, timeline.finish[index(access.task)]);
  }
  return busy;
}

/// Replays the allocator of one device.
class DeviceReplay {
 public:
  DeviceReplay(const Graph& graph, std::int32_t device, const AllocatorSettings& settings)
      : graph_(graph), settings_(settings), allocator_(settings) {
    run_.device = device;
  }

  void add_unknown_memory(Bytes bytes) {
    if (bytes <= Bytes{}) return;
    bytes = std::min(bytes, kMaxUnknown);
    const std::int64_t handle = AllocatorRun::kWasThereBefore;
    allocator_.adopt({.address = kUnknownAddress,
                      .bytes = bytes.count,
                      .stream = kUnknownStream,
                      .blocks = {{kUnknownAddress, bytes.count, bytes.count, handle}}});
    if (settings_.limit > Bytes{} && bytes > settings_.limit) {
      refuse({.handle = handle,
              .requested = bytes.count,
              .segment = bytes.count,
              .levels = allocator_.levels()},
             AllocatorRun::kWasThereBefore, 0ns);
    }
    record_levels(0ns);
  }

  void make(std::uint32_t number, Nanoseconds time) {
    const Allocation& block = graph_.allocations()[number];
    const Bytes requested = block.requested > Bytes{} ? block.requested : block.bytes;
    const auto refusal = allocator_.malloc_beyond(number, requested, stream_of(block), time);
    if (refusal) refuse(*refusal, number, time);
    record_levels(time);
  }

  void free(std::uint32_t number, Nanoseconds time, Nanoseconds busy_until) {
    if (busy_until > Nanoseconds::min()) {
      allocator_.record_stream(number, kAnotherStream, busy_until);
    }
    allocator_.free(number, time);
    record_levels(time);
  }

  AllocatorRun finish() {
    run_.peaks = allocator_.peaks();
    run_.driver_mallocs = allocator_.driver_mallocs();
    run_.driver_frees = allocator_.driver_frees();
    run_.retries = allocator_.retries();
    return std::move(run_);
  }

 private:
  static constexpr std::int64_t kUnknownStream = -2, kAnotherStream = -3;
  static constexpr std::uint64_t kUnknownAddress = std::uint64_t{1} << 62;
  static constexpr Bytes kMaxUnknown{std::int64_t{1} << 59};  ///< More memory than any device has.

  static std::int64_t stream_of(const Allocation& block) {
    return block.stream == kNoLane ? -1 : static_cast<std::int64_t>(index(block.stream));
  }

  void refuse(const OutOfMemory& refusal, std::uint32_t number, Nanoseconds time) {
    if (run_.out_of_memory) return;
    run_.out_of_memory = refusal;
    run_.refused = number;
    run_.refused_time = time;
  }

  void record_levels(Nanoseconds time) {
    const AllocatorLevels& levels = allocator_.levels();
    if (run_.curve.empty() || levels.reserved > most_reserved_) {
      most_reserved_ = levels.reserved;
      run_.peak_reserved_time = time;
    }
    run_.curve.push_back({time, levels});
  }

  const Graph& graph_;
  const AllocatorSettings& settings_;
  CachingAllocator allocator_;
  AllocatorRun run_;
  std::int64_t most_reserved_ = 0;
};

/// Makes a replay for each device that has allocations, or memory in use when the recording began.
std::map<std::int32_t, DeviceReplay> replays_of(const Graph& graph,
                                                const AllocatorSettings& settings) {
  std::map<std::int32_t, DeviceReplay> replays;
  const auto add = [&](std::int32_t device) {
    if (device >= 0) replays.try_emplace(device, graph, device, settings);
  };
  for (const Allocation& block : graph.allocations()) {
    if (block.bytes > Bytes{}) add(block.device);
  }
  for (std::size_t device = 0; device < graph.initial_memory().size(); ++device) {
    if (graph.initial_memory()[device] > Bytes{}) add(static_cast<std::int32_t>(device));
  }
  return replays;
}

}  // namespace

std::vector<AllocatorRun> replay_allocator(const Graph& graph, const Timeline& timeline,
                                           const AllocatorSettings& settings) {
  std::map<std::int32_t, DeviceReplay> replays = replays_of(graph, settings);
  const std::vector<Allocation>& blocks = graph.allocations();
  std::map<std::int32_t, Bytes> known;
  for (const Allocation& block : blocks) {
    if (block.made_by == kNoTask) known[block.device] += block.bytes;
  }
  for (auto& [device, replay] : replays) {
    replay.add_unknown_memory(initial_memory(graph, device) - known[device]);
  }
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    const bool existed_before = blocks[i].made_by == kNoTask && blocks[i].bytes > Bytes{};
    if (existed_before && blocks[i].device >= 0) replays.at(blocks[i].device).make(i, 0ns);
  }
  const std::vector<Nanoseconds> busy = busy_on_other_streams(graph, timeline);
  for (const MemoryEvent& event : memory_events(graph, timeline)) {
    const std::int32_t device = blocks[event.allocation].device;
    if (device < 0) continue;
    DeviceReplay& replay = replays.at(device);
    if (event.frees) {
      replay.free(event.allocation, event.time, busy[event.allocation]);
    } else {
      replay.make(event.allocation, event.time);
    }
  }
  std::vector<AllocatorRun> runs;
  for (auto& [device, replay] : replays) runs.push_back(replay.finish());
  return runs;
}

}  // namespace foretrace
