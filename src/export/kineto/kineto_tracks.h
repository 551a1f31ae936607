#pragma once

#include "foretrace/trace.h"
#include "trace/kineto_file.h"

namespace foretrace {

/// The track of a synchronization record: beside its stream, because it overlaps the work it waits
/// for; `stream` is -1 for one that waits for a device.
Track sync_track(std::int32_t device, std::int64_t stream);

/// The names of processes, threads and streams, and the order in which viewers show them: threads,
/// then devices.
void write_kineto_tracks(const Trace& trace, KinetoFile& file);

}  // namespace foretrace
