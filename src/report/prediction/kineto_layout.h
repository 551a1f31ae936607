#pragma once

// Where each lane of a graph is drawn in a Chrome trace: a process for the host and one for each
// device of a rank, a thread for each lane. Tasks of one lane may overlap (kernels of a CUDA graph
// do by a fraction of a microsecond); as no two events may on one thread, the later goes to an
// overflow thread of the same stream.

#include <vector>

#include "foretrace/graph.h"
#include "trace/kineto_file.h"

namespace foretrace {

bool is_host_lane(const Lane& lane);

class KinetoLayout {
 public:
  explicit KinetoLayout(const Graph& graph);

  /// The stream that the arguments of a device event name; unique on its device.
  std::int64_t stream(LaneId lane) const { return places_[index(lane)].thread; }
  std::int64_t device(LaneId lane) const { return devices_[index(lane)]; }
  Track track(LaneId lane) const { return places_[index(lane)]; }
  /// Its events are nested, so they have room on one thread.
  void use(LaneId lane) { rows_[index(lane)].resize(1); }
  /// Where an event of the lane has room. Ask in order of start.
  Track track_for(LaneId lane, Nanoseconds start, Nanoseconds finish);
  /// Likewise for a record of a wait on the stream, which is drawn beside it.
  Track wait_track_for(LaneId lane, Nanoseconds start, Nanoseconds finish);

  /// Names all processes and threads that were used.
  void write_names(KinetoFile& file, const Graph& graph) const;

 private:
  using Rows = std::vector<Nanoseconds>;  ///< Until when each is taken.
  static std::size_t room(Rows& rows, Nanoseconds start, Nanoseconds finish);

  std::vector<Track> places_;          ///< By lane.
  std::vector<std::int64_t> devices_;  ///< By lane.
  std::vector<Rows> rows_;             ///< By lane.
  std::vector<Rows> wait_rows_;        ///< By lane.
};

}  // namespace foretrace
