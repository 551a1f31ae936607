#pragma once

#include <limits>
#include <random>
#include <string>

#include "foretrace/trace.h"

namespace foretrace {

/// A valid trace in which every column has small, large and extreme values.
class RandomTrace {
 public:
  explicit RandomTrace(std::uint32_t seed) : random_(seed) {}

  Trace make() {
    make_names();
    make_lanes();
    const auto rows = [&](auto& table, auto make_row) {
      const std::size_t count = below(3) == 0 ? 0 : below(200);
      for (std::size_t i = 0; i < count; ++i) table.push_back(make_row());
    };
    rows(trace_.op_details, [&] {
      return OpDetails{
          name(), name(), name(), name(), name(), any(), static_cast<std::uint64_t>(any()),
          any(),  any(),  any()};
    });
    std::uint64_t node = 0;
    rows(trace_.captured, [&] {
      return CapturedNode{++node, static_cast<std::uint32_t>(below(9)),
                          name(), name(),
                          name(), name(),
                          name(), name(),
                          name()};
    });
    rows(trace_.collectives, [&] {
      return CollectiveDetails{
          name(), name(), name(), name(), any(), any(), static_cast<std::int32_t>(any()), any()};
    });
    rows(trace_.launches,
         [&] { return LaunchShape{id(), id(), id(), id(), id(), id(), id(), id(), id()}; });
    rows(trace_.hosts, [&] { return host(); });
    rows(trace_.devices, [&] { return device(); });
    rows(trace_.syncs, [&] { return sync(); });
    rows(trace_.memory, [&] {
      return MemoryRecord{time(),
                          static_cast<std::uint64_t>(any()),
                          any(),
                          any(),
                          any(),
                          optional(trace_.streams.size()),
                          name(),
                          thread(),
                          static_cast<std::int16_t>(any()),
                          MemoryAction(below(8))};
    });
    rows(trace_.graph_edges, [&] { return GraphEdge{random_(), random_() >> below(64)}; });
    rows(trace_.segments, [&] { return segment(); });
    if (!trace_.segments.empty()) rows(trace_.blocks, [&] { return block(); });
    if (!trace_.hosts.empty()) rows(trace_.tensors, [&] { return tensor(); });
    rows(trace_.links, [&] { return LinkRecord{any(), time(), thread(), below(2) == 0}; });
    make_rest();
    return std::move(trace_);
  }

 private:
  void make_names() {
    for (std::size_t i = below(50); i > 0; --i) trace_.names.intern(text());
  }

  void make_lanes() {
    for (std::size_t i = 1 + below(4); i > 0; --i) trace_.threads.push_back({any(), any(), text()});
    for (std::size_t i = 1 + below(4); i > 0; --i)
      trace_.streams.push_back({static_cast<std::int32_t>(any()), any()});
    for (std::size_t i = below(3); i > 0; --i)
      trace_.properties.push_back({1, text(), any(), 80, 7, 5});
  }

  HostRecord host() {
    return {time(),       time(),
            name(),       id(),
            id(),         optional(trace_.op_details.size()),
            thread(),     HostKind(below(6)),
            below(2) == 0};
  }

  DeviceRecord device() {
    return {.start_ns = time(),
            .duration_ns = time(),
            .bytes = time(),
            .graph_node = random_() >> below(64),
            .name = name(),
            .correlation = id(),
            .external = id(),
            .details = optional(trace_.collectives.size()),
            .grid = id(),
            .launch = optional(trace_.launches.size()),
            .block = static_cast<std::uint16_t>(id()),
            .stream = static_cast<std::uint16_t>(below(trace_.streams.size())),
            .kind = DeviceKind(below(4)),
            .direction = CopyDirection(below(6)),
            .pinned_host = below(2) == 0};
  }

  SyncRecord sync() {
    return {time(),
            time(),
            id(),
            optional(trace_.streams.size()),
            optional(trace_.streams.size()),
            id(),
            id(),
            SyncKind(below(5))};
  }

  MemorySegment segment() {
    return {.address = random_(),
            .bytes = time(),
            .stream = optional(trace_.streams.size()),
            .stack = name(),
            .pool = name(),
            .device = static_cast<std::int16_t>(any()),
            .is_large = below(2) == 0,
            .is_expandable = below(2) == 0};
  }

  MemoryBlock block() {
    return {.address = random_(),
            .bytes = time(),
            .requested_bytes = any(),
            .segment = static_cast<std::uint32_t>(below(trace_.segments.size())),
            .stack = name(),
            .state = BlockState(below(3))};
  }

  TensorRecord tensor() {
    return {.tensor = any(),
            .storage = any(),
            .offset_bytes = any(),
            .bytes = time(),
            .host = static_cast<std::uint32_t>(below(trace_.hosts.size())),
            .type = name(),
            .shape = name(),
            .argument = static_cast<std::uint16_t>(any()),
            .device = static_cast<std::int16_t>(any()),
            .is_output = below(2) == 0};
  }

  void make_rest() {
    trace_.rank = static_cast<std::int32_t>(below(100));
    trace_.world_size = 100;
    trace_.origin_ns = any();
    trace_.tick_ns = below(2) == 0 ? 1 : 1000;
    trace_.has_times = below(4) != 0;
    trace_.format = "kineto";
    trace_.metadata = {{"", text()}, {"a", text()}, {text(), "{}"}};
    trace_.notes.add(Severity::info, text(), text(), 3);
    trace_.notes.add(Severity::warning, "x" + text(), "", static_cast<std::int64_t>(below(1000)));
  }

  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::int64_t any() {
    constexpr std::int64_t kExtremes[] = {0, -1, 1, std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min()};
    if (below(4) == 0) return kExtremes[below(5)];
    return static_cast<std::int64_t>(random_()) >> below(60);
  }
  std::int64_t time() { return static_cast<std::int64_t>(random_() >> (2 + below(60))); }
  std::uint32_t id() { return static_cast<std::uint32_t>(random_() >> below(64)); }
  NameId name() { return NameId(static_cast<std::uint32_t>(below(trace_.names.size()))); }
  std::uint16_t thread() { return static_cast<std::uint16_t>(below(trace_.threads.size())); }
  std::uint32_t optional(std::size_t size) {
    return size == 0 || below(3) == 0 ? kNone : static_cast<std::uint32_t>(below(size));
  }
  std::string text() {
    std::string text(below(20), ' ');
    for (char& c : text) c = static_cast<char>(below(256));
    return text;
  }

  std::mt19937_64 random_;
  Trace trace_;
};

}  // namespace foretrace
