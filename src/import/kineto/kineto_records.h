#pragma once

// Turns events into records. Times stay as recorded until finish(), which makes them relative to
// the first one.

#include <cstdint>
#include <utility>
#include <vector>

#include "import/common/device_lanes.h"
#include "import/kineto/kineto_trace.h"

namespace foretrace {

class KinetoRecords {
 public:
  explicit KinetoRecords(Trace& trace) : to_(trace) {}

  /// Adds an event. `offset` is its first byte in the text.
  void add(const KinetoEvent& event, std::int64_t offset);
  void count(KinetoOddity oddity, std::int64_t offset) { to_.count_at(oddity, offset); }

  /// Number of events that a trace has a place for.
  std::int64_t useful() const { return useful_; }

  /// Finishes the trace. `base_ns` is the value of the clock at time 0 of the file.
  void finish(std::int64_t base_ns);

 private:
  void add_complete(const KinetoEvent& event);
  void note_bytes(const KinetoEvent& event);
  void add_instant(const KinetoEvent& event);
  void add_lane_work(const KinetoEvent& event, KinetoTimes& times);
  void add_flow(const KinetoEvent& event, char phase);
  void add_link(const KinetoEvent& event, bool is_end);
  void add_metadata(const KinetoEvent& event);
  void begin_range(const KinetoEvent& event);
  void end_range(const KinetoEvent& event);

  KinetoTrace to_;
  std::int64_t useful_ = 0;
  std::vector<std::vector<HostRecord>> open_;  ///< Ranges without an end so far, by thread.
  /// Correlation id and bytes of calls. ROCm gives the size of a copy at the call, and not always
  /// at the copy.
  std::vector<std::pair<std::uint32_t, std::int64_t>> call_bytes_;
  /// Events without a category, and arrows between them.
  std::vector<LaneWork> lane_work_;
  std::vector<LaneFlow> flows_;
};

}  // namespace foretrace
