#pragma once

#include <cstdint>
#include <vector>

#include "export/kineto/kineto_file.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Assigns tracks to records. Records of a stream may overlap (kernels of a CUDA graph do, by a
/// fraction of a microsecond), but viewers draw overlapping events of one track as nested. So the
/// later record goes to another track of its stream. Synchronization records get tracks beside
/// their stream, because they overlap the work that they wait for.
class KinetoTracks {
 public:
  explicit KinetoTracks(const Trace& trace);

  Track device(std::size_t record) const;
  Track sync(std::size_t record) const;

 private:
  const Trace& trace_;
  std::vector<std::uint8_t> device_rows_, sync_rows_;  ///< By record; 0 is the stream itself.
};

/// The device of a synchronization record; 0 if the record names no stream.
std::int32_t device_of(const Trace& trace, const SyncRecord& record);

/// Writes the names of processes, threads and streams, and the order in which viewers show them:
/// threads, then devices.
void write_track_names(const Trace& trace, const KinetoTracks& tracks, const RankView* view,
                       KinetoFile& file);

}  // namespace foretrace
