#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <map>
#include <set>
#include <unordered_map>

#include "export/torch_memory/memory_viz.h"
#include "foretrace/error.h"

namespace foretrace {

namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;

std::vector<std::string> frames_of(std::string_view stack) {
  std::vector<std::string> frames;
  while (!stack.empty()) {
    const std::size_t end = stack.find(';');
    frames.emplace_back(stack.substr(0, end));
    stack.remove_prefix(end == stack.npos ? stack.size() : end + 1);
  }
  return frames;
}

/// Converts each stack of the trace to frames once, and returns its index in VizState::stacks.
class Stacks {
 public:
  Stacks(const Trace& trace, VizState& state) : trace_(trace), state_(state) {}

  std::uint32_t operator()(NameId stack) {
    if (stack == NameId{}) return 0;
    const auto next = static_cast<std::uint32_t>(state_.stacks.size());
    const auto [found, is_new] =
        stack_indices_.try_emplace(static_cast<std::uint32_t>(stack), next);
    if (is_new) state_.stacks.push_back(frames_of(trace_.names[stack]));
    return found->second;
  }

 private:
  const Trace& trace_;
  VizState& state_;
  std::unordered_map<std::uint32_t, std::uint32_t> stack_indices_;
};

std::int64_t stream_id(const Trace& trace, std::uint32_t stream) {
  return stream == kNone ? 0 : trace.streams[stream].id;
}

VizEvent event_of(const Trace& trace, const MemoryRecord& record) {
  VizEvent event;
  event.action = record.action;
  event.frees = record.bytes < 0;
  event.address = record.address;
  event.bytes = record.bytes < 0 ? -record.bytes : record.bytes;
  event.time_us = (trace.origin_ns + record.time_ns) / 1000;
  event.stream = stream_id(trace, record.stream);
  return event;
}

std::vector<VizEvent>& history_of(std::int16_t device, VizState& state) {
  const auto at = static_cast<std::size_t>(device);
  if (state.histories.size() <= at) state.histories.resize(at + 1);
  return state.histories[at];
}

/// Makes a stack from the ops around each memory event, innermost first.
class EnclosingOps {
 public:
  EnclosingOps(const Trace& trace, VizState& state) : trace_(trace), state_(state) {
    hosts_.resize(trace.threads.size());
    for (std::uint32_t i = 0; i < trace.hosts.size(); ++i) {
      const HostKind kind = trace.hosts[i].kind;
      if (kind == HostKind::op || kind == HostKind::annotation || kind == HostKind::python)
        hosts_[trace.hosts[i].thread].push_back(i);
    }
    for (auto& thread : hosts_) {
      std::stable_sort(thread.begin(), thread.end(), [&](std::uint32_t a, std::uint32_t b) {
        const HostRecord &x = trace_.hosts[a], &y = trace_.hosts[b];
        return x.start_ns != y.start_ns ? x.start_ns < y.start_ns : x.duration_ns > y.duration_ns;
      });
    }
    next_.resize(hosts_.size());
    open_.resize(hosts_.size());
  }

  /// The index of the stack at a time. REQUIRES: times do not decrease on a thread.
  std::uint32_t at(std::uint16_t thread, std::int64_t time) {
    std::vector<std::uint32_t>& open = open_[thread];
    const std::vector<std::uint32_t>& all = hosts_[thread];
    std::size_t& next = next_[thread];
    const auto close = [&](std::int64_t until) {
      while (!open.empty() && end(open.back()) < until) open.pop_back();
    };
    for (; next < all.size() && trace_.hosts[all[next]].start_ns <= time; ++next) {
      close(trace_.hosts[all[next]].start_ns);
      open.push_back(all[next]);
    }
    close(time);
    return number(open);
  }

 private:
  std::int64_t end(std::uint32_t host) const {
    return trace_.hosts[host].start_ns + trace_.hosts[host].duration_ns;
  }

  std::uint32_t number(const std::vector<std::uint32_t>& open) {
    if (open.empty()) return 0;
    std::vector<NameId> names;
    for (auto host = open.rbegin(); host != open.rend(); ++host)
      names.push_back(trace_.hosts[*host].name);
    const auto [found, is_new] =
        stack_indices_.try_emplace(names, static_cast<std::uint32_t>(state_.stacks.size()));
    if (is_new) {
      std::vector<std::string>& frames = state_.stacks.emplace_back();
      for (auto host = open.rbegin(); host != open.rend(); ++host) frames.push_back(frame(*host));
    }
    return found->second;
  }

  /// A host record as a frame: "train.py:88 step" for the profiler's "train.py(88): step".
  std::string frame(std::uint32_t host) const {
    const HostRecord& record = trace_.hosts[host];
    const std::string_view name = trace_.names[record.name];
    const std::size_t bracket = name.find('('), colon = name.find("): ");
    if (record.kind == HostKind::python && bracket < colon && colon != name.npos) {
      const std::string_view line = name.substr(bracket + 1, colon - bracket - 1);
      if (!line.empty() && line.find_first_not_of("0123456789") == line.npos) {
        return fmt::format("{}:{} {}", name.substr(0, bracket), line, name.substr(colon + 3));
      }
    }
    return fmt::format("{}:0 {}", to_string(record.kind), name);
  }

  const Trace& trace_;
  VizState& state_;
  std::vector<std::vector<std::uint32_t>> hosts_, open_;
  std::vector<std::size_t> next_;
  std::map<std::vector<NameId>, std::uint32_t> stack_indices_;
};

/// Makes segments around blocks: whole granules, joined if they touch.
void add_segments(const std::map<std::uint64_t, VizEvent>& live, std::int32_t device,
                  VizState& state) {
  VizSegment* segment = nullptr;
  std::uint64_t end = 0;  // End of the blocks in the segment so far.
  const auto segment_end = [&] {
    return segment->address + static_cast<std::uint64_t>(segment->bytes);
  };
  const auto fill = [&](std::uint64_t until) {
    if (until <= end) return;
    VizBlock& gap = segment->blocks.emplace_back();
    gap.address = end;
    gap.bytes = static_cast<std::int64_t>(until - end);
    gap.state = BlockState::inactive;
    end = until;
  };
  for (const auto& [address, event] : live) {
    const auto size = static_cast<std::uint64_t>(event.bytes);
    if (segment != nullptr && address < end)
      continue;  // Overlaps the block before it, which no allocator does.
    const std::uint64_t first = address / kGranule * kGranule;
    const std::uint64_t last = (address + size + kGranule - 1) / kGranule * kGranule;
    if (segment == nullptr || first > segment_end()) {
      if (segment != nullptr) fill(segment_end());
      segment = &state.segments.emplace_back();
      segment->address = end = first;
      segment->device = device;
      segment->stream = event.stream;
    }
    segment->bytes = static_cast<std::int64_t>(std::max(last, first + kGranule) - segment->address);
    fill(address);
    segment->blocks.push_back(
        {address, event.bytes, event.bytes, BlockState::allocated, event.stack});
    end = address + size;
  }
  if (segment != nullptr) fill(segment_end());
}

/// Computes the bytes in use on a device before its first event, without the blocks that events
/// free.
class InUseBefore {
 public:
  void add(const MemoryRecord& record) {
    if (record.action != MemoryAction::block) return;
    const auto size = static_cast<std::uint64_t>(std::abs(record.bytes));
    end_ = std::max(end_, record.address + size);
    if (level_ < 0 && record.total_allocated >= 0)
      level_ = record.total_allocated - record.bytes - change_;
    change_ += record.bytes;
    if (record.bytes > 0) {
      made_.insert(record.address);
    } else if (made_.erase(record.address) == 0) {
      known_ -= record.bytes;
    }
  }

  /// Adds these bytes as one block after all others.
  void add_segments(std::int32_t device, VizState& state) const {
    if (level_ <= known_) return;
    VizSegment& segment = state.segments.emplace_back();
    segment.address = (end_ + kGranule - 1) / kGranule * kGranule;
    segment.bytes = level_ - known_;
    segment.device = device;
    state.stacks.push_back({"recording:0 in use before the recording"});
    segment.blocks.push_back({segment.address, segment.bytes, segment.bytes, BlockState::allocated,
                              static_cast<std::uint32_t>(state.stacks.size() - 1)});
  }

 private:
  std::uint64_t end_ = 0;
  std::int64_t level_ = -1, change_ = 0, known_ = 0;
  std::set<std::uint64_t> made_;
};

}  // namespace

VizState state_of_snapshot(const Trace& trace) {
  VizState state;
  state.has_times = trace.has_times;
  Stacks stacks(trace, state);
  for (const MemorySegment& from : trace.segments) {
    VizSegment& segment = state.segments.emplace_back();
    segment.address = from.address;
    segment.bytes = from.bytes;
    segment.stream = stream_id(trace, from.stream);
    segment.device = from.device;
    segment.is_large = from.is_large;
    segment.is_expandable = from.is_expandable;
    segment.stack = stacks(from.stack);
    segment.pool = trace.names[from.pool];
    if (from.device >= 0) history_of(from.device, state);
  }
  for (const MemoryBlock& from : trace.blocks) {
    state.segments[from.segment].blocks.push_back(
        {from.address, from.bytes, from.requested_bytes, from.state, stacks(from.stack)});
  }
  for (const MemoryRecord& record : trace.memory) {
    if (record.device < 0) continue;
    VizEvent event = event_of(trace, record);
    event.stack = stacks(record.stack);
    history_of(record.device, state).push_back(event);
  }
  return state;
}

VizState state_of_events(const Trace& trace) {
  VizState state;
  state.has_times = trace.has_times;
  std::vector<const MemoryRecord*> events;
  bool on_device = false;
  for (const MemoryRecord& record : trace.memory) {
    on_device |= record.device >= 0;
    if (record.device >= 0 && record.address != 0) events.push_back(&record);
  }
  if (events.empty()) {
    throw Error(on_device ? "a memory snapshot must have addresses, but the memory events of this "
                            "trace have none; newer versions of PyTorch record them"
                          : "a memory snapshot is of a device, but the trace has memory events of "
                            "the host only");
  }
  std::stable_sort(events.begin(), events.end(), [](const MemoryRecord* a, const MemoryRecord* b) {
    return a->time_ns < b->time_ns;
  });
  Stacks stacks(trace, state);
  EnclosingOps ops(trace, state);
  std::map<std::int16_t, std::map<std::uint64_t, VizEvent>> live;
  std::map<std::int16_t, InUseBefore> before;
  for (const MemoryRecord* record : events) {
    VizEvent event = event_of(trace, *record);
    event.stack =
        record->stack != NameId{} ? stacks(record->stack) : ops.at(record->thread, record->time_ns);
    before[record->device].add(*record);
    std::vector<VizEvent>& history = history_of(record->device, state);
    if (record->action == MemoryAction::block && event.frees) {
      // Profilers record only that a block was freed; a snapshot also records when that was
      // requested.
      VizEvent request = event;
      request.action = MemoryAction::free_requested;
      history.push_back(request);
      live[record->device].erase(event.address);
    } else if (record->action == MemoryAction::block && event.bytes > 0) {
      live[record->device][event.address] = event;
    }
    history.push_back(event);
  }
  for (const auto& [device, blocks] : live) add_segments(blocks, device, state);
  for (const auto& [device, rest] : before) rest.add_segments(device, state);
  return state;
}

}  // namespace foretrace
