#pragma once

// Writes the content of the slices of a Perfetto trace: the names, categories and arguments of
// their records.

#include <string_view>

#include "export/perfetto/perfetto_packets.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Name and category of the event that describes the file itself.
inline constexpr std::string_view kPerfettoHead = "foretrace";

/// The nesting depth of a kind: of two host records with the same times, the deeper one is inside.
int perfetto_depth(HostKind kind);

void describe_host(const Trace& trace, const HostRecord& record, PerfettoPackets& out);
void describe_device(const Trace& trace, const DeviceRecord& record, PerfettoPackets& out);
void describe_sync(const Trace& trace, const SyncRecord& record, PerfettoPackets& out);
void describe_memory(const Trace& trace, const MemoryRecord& record, PerfettoPackets& out);

}  // namespace foretrace
