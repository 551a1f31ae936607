#pragma once

#include <cstdint>
#include <vector>

#include "export/kineto/kineto_file.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Records of one stream may overlap (kernels of a CUDA graph do by a fraction of a microsecond),
/// but viewers take two events of one track for one inside the other. So the later is drawn on a
/// further track of its stream. Synchronization records are drawn beside their stream, because they
/// overlap what they wait for.
class KinetoTracks {
 public:
  explicit KinetoTracks(const Trace& trace);

  Track device(std::size_t record) const;
  Track sync(std::size_t record) const;

 private:
  const Trace& trace_;
  std::vector<std::uint8_t> device_rows_, sync_rows_;  ///< By record; 0 is the stream itself.
};

/// 0 where the record does not say.
std::int32_t device_of(const Trace& trace, const SyncRecord& record);

/// The names of processes, threads and streams, and the order in which viewers show them: threads,
/// then devices.
void write_track_names(const Trace& trace, const KinetoTracks& tracks, const RankView* view,
                       KinetoFile& file);

}  // namespace foretrace
