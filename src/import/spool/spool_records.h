#pragma once

// Turns the rows of a spool into records of a trace.

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/common/launch_shapes.h"
#include "import/spool/spool_joins.h"

namespace foretrace {

/// Pairs the begins and ends of ranges. They may be on different threads, and the end may come
/// first in the file.
class SpoolRanges {
 public:
  SpoolRanges(SpoolIndex& index, Trace& trace, SpoolJoins& joins)
      : index_(index), trace_(trace), joins_(joins) {}

  void begin(const spool::Range& row);
  void end_push(const spool::Range& row);
  void end_start(const spool::Range& row);
  /// Ends the open ranges at the end of the recording: at `last_time` or the last time of a range,
  /// whichever is later. Drops open steps.
  void close(std::int64_t last_time);

  std::int64_t open_ranges = 0, open_steps = 0, stray_ends = 0;

 private:
  /// A range without an end so far: the index of its host record, and its domain.
  struct OpenRange {
    std::uint32_t record = 0;
    std::uint32_t domain = 0;
  };

  std::uint32_t add(const spool::Range& row);
  void end(std::uint32_t record, std::uint64_t time);
  std::vector<OpenRange>& open_of(std::uint16_t thread);

  SpoolIndex& index_;
  Trace& trace_;
  SpoolJoins& joins_;
  std::vector<std::vector<OpenRange>> open_;                     ///< By thread.
  std::unordered_map<std::uint64_t, std::uint32_t> started_;     ///< Range id -> host record.
  std::unordered_map<std::uint64_t, std::uint64_t> early_ends_;  ///< Range id -> time of its end.
  std::int64_t last_time_ = 0;
};

class SpoolRecords {
 public:
  /// Reserves memory in `trace` for the rows that `index` has counted. REQUIRES: all arguments
  /// outlive this.
  SpoolRecords(SpoolIndex& index, std::uint64_t process, Trace& trace, SpoolJoins& joins);

  /// Adds the rows of one chunk.
  void take(std::string_view body);
  void finish() { ranges.close(last_time_); }

  SpoolRanges ranges;
  std::int64_t backwards = 0, odd_rows = 0;

 private:
  struct Times {
    std::int64_t start = 0;
    std::int64_t duration = 0;
  };

  void take_row(spool::RowKind kind, const char* row);
  void add_device(const spool::Device& row);
  template <class Row>
  void add_kernel(const Row& row);
  void add_transfer(const spool::Transfer& row);
  void add_call(const spool::Call& row);
  void add_sync(const spool::Sync& row);
  void add_device_memory(const spool::DeviceMemory& row);
  void add_overhead(const spool::Overhead& row);
  void add_block(const spool::Block& row);
  Times times_of(std::uint64_t start, std::uint64_t end);

  SpoolIndex& index_;
  std::uint64_t process_;
  Trace& trace_;
  LaunchShapes launches_;
  SpoolJoins& joins_;
  /// Host records of driver calls that may lie inside a later runtime call, by thread.
  std::vector<std::vector<std::uint32_t>> driver_calls_;
  std::unordered_map<std::uint64_t, std::int64_t> device_blocks_;
  std::vector<bool> known_devices_;  ///< By ordinal.
  std::int64_t last_time_ = 0;
};

}  // namespace foretrace
