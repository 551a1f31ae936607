#pragma once

// The readers of a report, one file for each kind of table. Some need calls, collectives or lanes
// from others, so they must run in the order of read_nsys().

#include <cstdint>
#include <unordered_map>

#include "import/nsys/nsys_tables.h"

namespace foretrace {

/// A call, for rows that name only its correlation id.
struct NsysCall {
  NameId name{};
  std::uint16_t thread = 0;
};
using NsysCalls = std::unordered_map<std::uint32_t, NsysCall>;

// nsys_machine.cc: the report itself, the machine and the session.
/// Returns when the session began, in nanoseconds since 1970.
std::int64_t read_nsys_machine(NsysTables& tables);
/// REQUIRES: all records with streams have been read.
void read_nsys_stream_flags(NsysTables& tables);
/// Adds notes about the processes, the profiler's messages, and tables that no reader reads.
void note_nsys_report(NsysTables& tables);

// nsys_host.cc: work on threads.
NsysCalls read_nsys_calls(NsysTables& tables);
/// Ranges of libraries and of the profiler itself.
void read_nsys_ranges(NsysTables& tables);
void read_nsys_thread_names(NsysTables& tables);

// nsys_nvtx.cc: ranges that the program marked.
void read_nsys_nvtx(NsysTables& tables);

// nsys_device.cc: work of the device.
/// Must run before read_nsys_device_work(), because kernels refer to collectives by number.
void read_nsys_collectives(NsysTables& tables);
void read_nsys_device_work(NsysTables& tables);

// nsys_waits.cc
void read_nsys_waits(NsysTables& tables, const NsysCalls& calls);
// nsys_memory.cc
void read_nsys_memory(NsysTables& tables, const NsysCalls& calls);

}  // namespace foretrace
