#pragma once

// Turns events into records. Times stay as recorded until finish(), which makes them relative to
// the smallest.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/trace.h"
#include "import/common/intern_cache.h"
#include "import/kineto/kineto_event.h"
#include "import/kineto/kineto_lanes.h"

namespace foretrace {

/// Kinds of odd events. Each has one line in kOddTexts.
enum class Odd : std::uint8_t {
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
  not_an_object,
  count
};

/// The meaning of a category; both generations of names, and those of ROCm, XPU and others.
enum class Category : std::uint8_t {
  unknown,
  none,
  op,
  annotation,
  python,
  runtime,
  driver,
  overhead,
  kernel,
  copy,
  fill,
  device_annotation,
  sync,
  ignored,   ///< Repeats other events.
  no_place,  ///< Stands for something that a trace does not contain.
};

class KinetoRecords {
 public:
  explicit KinetoRecords(Trace& trace) : trace_(trace), intern_(trace.names), lanes_(trace) {}

  /// `offset` is where the event begins in the text.
  void add(const KinetoEvent& event, std::int64_t offset);
  void count(Odd odd, std::int64_t offset);

  /// Events that a trace has a place for.
  std::int64_t useful() const { return useful_; }

  /// `base_ns` is the clock's value at time 0.
  void finish(std::int64_t base_ns);

 private:
  struct Times {
    std::int64_t start = 0;
    std::int64_t duration = 0;
  };
  struct CallBytes {
    std::uint32_t correlation;
    std::int64_t bytes;
  };

  void add_complete(const KinetoEvent& event, std::int64_t offset);
  void add_host(const KinetoEvent& event, HostKind kind, Times times);
  std::uint32_t op_details(const KinetoEvent& event);
  std::uint32_t python_details(const KinetoEvent& event);
  void add_device(const KinetoEvent& event, DeviceKind kind, Times times);
  void describe_copy(const KinetoEvent& event, DeviceRecord& record);
  std::uint32_t collective_details(const KinetoEvent& event);
  void add_sync(const KinetoEvent& event, Times times);
  void add_instant(const KinetoEvent& event, std::int64_t offset);
  void add_link(const KinetoEvent& event, bool is_end, std::int64_t offset);
  void add_metadata(const KinetoEvent& event);
  void begin_range(const KinetoEvent& event, std::int64_t offset);
  void end_range(const KinetoEvent& event, std::int64_t offset);

  Category category(const KinetoEvent& event) const;
  bool read_start(const KinetoEvent& event, std::int64_t offset, std::int64_t& start);
  std::int64_t read_duration(const KinetoEvent& event, std::int64_t offset);
  NameId name(const JsonValue& value);
  NameId name(const KinetoEvent& event, Field field) {
    return event.has(field) ? name(event[field]) : NameId{};
  }
  std::uint16_t thread_of(const KinetoEvent& event);
  std::uint16_t stream_of(const KinetoEvent& event);
  std::int64_t device_of(const KinetoEvent& event);

  void close_ranges();
  void drop_unrecorded_times();
  void fill_copy_sizes();
  void count_shared_correlations();
  void write_notes();

  Trace& trace_;
  InternCache intern_;
  KinetoLanes lanes_;
  std::int64_t useful_ = 0;
  bool whole_us_ = true;
  std::vector<std::vector<HostRecord>> open_;  ///< Ranges that have begun, by thread.
  std::vector<CallBytes> call_bytes_;
  std::int64_t offset_ = 0;  ///< Position of the current event.
  std::array<std::pair<std::int64_t, std::int64_t>, static_cast<std::size_t>(Odd::count)>
      odd_{};  ///< Count, first offset.
};

/// Which way a copy goes, from a name such as "Memcpy HtoD (Pageable -> Device)" or
/// "CopyHostToDevice".
CopyDirection copy_direction(std::string_view name);

}  // namespace foretrace
