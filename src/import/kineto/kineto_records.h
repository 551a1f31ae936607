#pragma once

// Turns events into records. Times stay as recorded until finish(), which makes them relative to
// the smallest.

#include <cstdint>
#include <utility>
#include <vector>

#include "import/kineto/kineto_trace.h"

namespace foretrace {

class KinetoRecords {
 public:
  explicit KinetoRecords(Trace& trace) : to_(trace) {}

  /// `offset` is where the event begins in the text.
  void add(const KinetoEvent& event, std::int64_t offset);
  void count(Odd odd, std::int64_t offset) { to_.count_at(odd, offset); }

  /// Events that a trace has a place for.
  std::int64_t useful() const { return useful_; }

  /// `base_ns` is the clock's value at time 0.
  void finish(std::int64_t base_ns);

 private:
  void add_complete(const KinetoEvent& event);
  void note_bytes(const KinetoEvent& event);
  void add_instant(const KinetoEvent& event);
  void add_link(const KinetoEvent& event, bool is_end);
  void add_metadata(const KinetoEvent& event);
  void begin_range(const KinetoEvent& event);
  void end_range(const KinetoEvent& event);

  KinetoTrace to_;
  std::int64_t useful_ = 0;
  std::vector<std::vector<HostRecord>> open_;  ///< Ranges that have begun, by thread.
  /// ROCm writes the bytes of a copy at the call, not always at the copy: by correlation.
  std::vector<std::pair<std::uint32_t, std::int64_t>> call_bytes_;
};

}  // namespace foretrace
