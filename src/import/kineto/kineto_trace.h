#pragma once

// The trace under construction, and the functions that the readers of all kinds of events share.

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretrace/trace.h"
#include "import/common/intern_cache.h"
#include "import/common/launch_shapes.h"
#include "import/kineto/kineto_event.h"
#include "import/kineto/kineto_lanes.h"

namespace foretrace {

/// Kinds of odd events. Each has one line in kOddityNotes.
enum class KinetoOddity : std::uint8_t {
  no_time,
  bad_time,
  no_duration,
  bad_duration,
  negative_duration,
  zero_time,
  no_place,
  unknown_category,
  unmatched_end,
  unclosed_begin,
  invalid_text,
  shared_correlation,
  exact_copy,
  not_an_object,
  count
};

struct KinetoTimes {
  std::int64_t start = 0;
  std::int64_t duration = 0;
};

class KinetoTrace {
 public:
  explicit KinetoTrace(Trace& target)
      : trace(target), lanes(target), launches(target), intern_(target.names) {}

  /// Begins an event, whose first byte in the text is at `offset`.
  void begin(std::int64_t offset) { offset_ = offset; }
  /// Counts the current event as odd.
  void count(KinetoOddity oddity, std::int64_t times = 1) { count_at(oddity, offset_, times); }
  /// A negative `offset` means that the place is unknown.
  void count_at(KinetoOddity oddity, std::int64_t offset, std::int64_t times = 1);
  void write_notes() const;

  /// Returns false, and counts the event, if it has no valid time.
  bool read_start(const KinetoEvent& event, std::int64_t& start);
  std::int64_t read_duration(const KinetoEvent& event);
  /// Whether all times so far are whole microseconds.
  bool whole_us() const { return whole_us_; }
  void note_finer_times(bool finer) { whole_us_ &= !finer; }
  NameId name(const KinetoEvent& event, Field field);
  std::uint16_t thread_of(const KinetoEvent& event);
  std::uint16_t stream_of(const KinetoEvent& event);
  std::int64_t device_of(const KinetoEvent& event);

  Trace& trace;
  KinetoLanes lanes;
  LaunchShapes launches;
  /// Indices into Trace::op_details.
  std::unordered_map<NameId, std::uint32_t> launches_of_kernels;
  /// Indices into Trace::collectives of messages, with the rank at the other end.
  std::vector<std::pair<std::uint32_t, std::int64_t>> messages;

 private:
  InternCache intern_;
  bool whole_us_ = true;
  std::int64_t offset_ = 0;
  std::array<std::pair<std::int64_t, std::int64_t>, static_cast<std::size_t>(KinetoOddity::count)>
      odd_{};  ///< Count, first offset.
};

// kineto_device.cc
void add_device(KinetoTrace& to, const KinetoEvent& event, DeviceKind kind, KinetoTimes times);
void add_sync(KinetoTrace& to, const KinetoEvent& event, KinetoTimes times);

// kineto_host.cc
void add_host(KinetoTrace& to, const KinetoEvent& event, HostKind kind, KinetoTimes times);

}  // namespace foretrace
