#pragma once

// Visits all times of a trace: importers read them on the clock of their file and make them
// relative to the first one at the end.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "foretrace/trace.h"

namespace foretrace {

/// In nanoseconds. The difference of times further from 0 could overflow 64 bits.
inline constexpr std::int64_t kMaxTime = 4'000'000'000'000'000'000;
/// In nanoseconds. A longer duration counts as damage.
inline constexpr std::int64_t kMaxDuration = 1'000'000'000'000'000'000;

/// Calls `visit` with every time that is recorded, to read or to change it.
template <class Visit>
void each_time(Trace& trace, Visit&& visit) {
  for (HostRecord& record : trace.hosts) visit(record.start_ns);
  for (DeviceRecord& record : trace.devices) visit(record.start_ns);
  for (SyncRecord& record : trace.syncs) visit(record.start_ns);
  for (MemoryRecord& record : trace.memory) visit(record.time_ns);
  for (LinkRecord& record : trace.links) visit(record.time_ns);
}

/// Makes all times relative to the first one and sets the origin to the first time plus `base_ns`,
/// the time 0 of the file. REQUIRES: differences between times do not overflow; the importer leaves
/// out times that are too far apart.
inline void make_times_relative(Trace& trace, std::int64_t base_ns = 0) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = kNever;
  each_time(trace, [&](std::int64_t time) { first = std::min(first, time); });
  if (first == kNever) first = 0;
  each_time(trace, [&](std::int64_t& time) { time -= first; });
  if (__builtin_add_overflow(base_ns, first, &trace.origin_ns)) trace.origin_ns = first;
}

}  // namespace foretrace
