#pragma once

// What the slices of a Perfetto trace say of their records: names, categories and arguments.

#include <string_view>

#include "export/perfetto/perfetto_packets.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Name and category of the event that tells what the file itself is.
inline constexpr std::string_view kPerfettoHead = "foretrace";

/// Of two host records with the same times the one with more is inside.
int perfetto_depth(HostKind kind);

void describe_host(const Trace& trace, const HostRecord& record, PerfettoPackets& out);
void describe_device(const Trace& trace, const DeviceRecord& record, PerfettoPackets& out);
void describe_sync(const Trace& trace, const SyncRecord& record, PerfettoPackets& out);
void describe_memory(const Trace& trace, const MemoryRecord& record, PerfettoPackets& out);

}  // namespace foretrace
