#pragma once

// A spool's rows as records of a trace. Names come first, because chunks that explain them may be
// written after rows that refer to them by number; then records; last the joins between records of
// different kinds.

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "foretrace/trace.h"
#include "import/common/intern_cache.h"
#include "import/kineto/kineto_lanes.h"
#include "import/spool/spool_file.h"
#include "trace/spool.h"
#include "trace/stream_flags.h"

namespace foretrace {

class SpoolReader {
 public:
  explicit SpoolReader(const TraceFile& input);

  Trace read();

 private:
  struct Times {
    std::int64_t start = 0;
    std::int64_t duration = 0;
  };
  /// A range that was begun: where its record is, for its end.
  struct OpenRange {
    std::uint32_t record = 0;
    std::uint32_t domain = 0;
  };
  struct Thread {
    std::vector<OpenRange> ranges;
    std::vector<std::uint32_t> driver_calls;  ///< Host records that no runtime call covers yet.
  };
  /// A call inside another: work that it launched counts as launched by the outer one.
  struct InnerCall {
    std::uint32_t inner = 0, outer = 0;
  };
  /// The facts that NCCL records about a collective on the thread that calls it.
  struct NamedCollective {
    std::int64_t time = 0;
    std::uint32_t record = 0;  ///< Host record of its range.
    std::uint32_t payload = 0;
  };

  // Names and lanes.
  void learn(const SpoolFile::Chunk& chunk);
  void learn_texts(std::string_view body, std::uint32_t count);
  std::string_view valid(std::string_view text);
  void learn_facts(std::string_view body, std::uint32_t count);
  void learn_rows(std::string_view body);
  void make_room();
  NameId name(std::uint32_t text);
  NameId call_name(std::uint16_t domain, std::uint32_t callback);
  std::uint16_t stream(std::uint32_t device, std::uint32_t context, std::uint32_t stream);
  std::uint16_t thread(std::uint32_t id);

  // Rows.
  void take(std::string_view body);
  void take_row(spool::RowKind kind, const char* row);
  void add_device(const spool::Device& row);
  void add_kernel(const spool::Kernel& row);
  void add_transfer(const spool::Transfer& row);
  void add_call(const spool::Call& row);
  void add_sync(const spool::Sync& row);
  void add_device_memory(const spool::DeviceMemory& row);
  void add_overhead(const spool::Overhead& row);
  void begin_range(const spool::Range& row);
  void end_push(const spool::Range& row);
  void end_start(const spool::Range& row);
  void end_record(std::uint32_t record, std::uint64_t time);
  std::uint32_t add_range(const spool::Range& row);
  void add_block(const spool::Block& row);
  Times device_times(std::uint64_t start, std::uint64_t end);
  /// Converts a time of the monotonic clock to that of the device. The result is clamped so that it
  /// can be subtracted from any other time; only damage causes later ones.
  static std::int64_t sound_time(std::uint64_t time);
  std::int64_t on_device_clock(std::uint64_t monotonic) const;

  // Joins.
  void close_ranges();
  void join_inner_calls();
  void drop_records();
  void resolve_events();
  void describe_collectives();
  bool add_collective(const NamedCollective& named, CollectiveDetails& details);
  void clone_edges();
  void orient_edges();
  void make_relative();
  void write_facts();
  void write_stream_flags();
  void write_notes();

  SpoolFile file_;
  Trace trace_;
  InternCache intern_;
  KinetoLanes lanes_;
  std::vector<NameId> names_;            ///< By number of text; 0 until asked for.
  std::vector<std::string_view> texts_;  ///< In the file, or in `repaired_`.
  std::deque<std::string> repaired_;
  std::vector<NameId> call_names_[3];         ///< By domain and number; 0 until asked for.
  std::vector<std::uint32_t> call_texts_[3];  ///< The same, as numbers of texts.
  std::vector<spool::Clocks> clocks_;
  std::unordered_map<std::uint32_t, std::uint32_t> device_of_context_;
  /// The streams a context shares its numbers with: (device, stream) -> context that has it.
  std::unordered_map<std::uint64_t, std::uint32_t> owner_of_stream_;
  std::unordered_map<std::uint64_t, std::uint16_t> streams_;
  std::unordered_map<std::uint64_t, StreamFlag> flags_;  ///< By the same key as `streams_`.
  std::unordered_map<std::uint32_t, std::uint16_t> thread_numbers_;
  std::uint64_t last_stream_key_ = ~std::uint64_t{0};
  std::uint16_t last_stream_ = 0;
  std::uint32_t last_thread_id_ = ~std::uint32_t{0};
  std::uint16_t last_thread_ = 0;
  std::vector<Thread> threads_;
  std::unordered_map<std::uint64_t, std::uint32_t> started_;     ///< Range id -> host record.
  std::unordered_map<std::uint64_t, std::uint64_t> early_ends_;  ///< Times, by range.
  std::unordered_set<std::uint32_t> named_by_program_;           ///< Threads.
  std::vector<spool::Event> events_;
  std::vector<spool::Sync> waits_;  ///< Waits for events, with the sync record's place.
  std::vector<std::uint32_t> wait_records_;
  std::vector<InnerCall> inner_;
  std::vector<std::uint32_t> dropped_;  ///< Host records that go.
  std::vector<NamedCollective> collectives_;
  std::vector<spool::GraphClone> clones_;
  std::unordered_map<std::uint64_t, std::int64_t> device_blocks_;
  std::unordered_map<std::string, std::string> facts_;
  std::vector<std::string> problems_;
  std::vector<std::string> not_recorded_;
  std::vector<bool> known_devices_;  ///< By ordinal.
  SpoolFile::Damage damage_;
  std::array<std::size_t, static_cast<std::size_t>(spool::RowKind::count)> row_counts_{};
  std::uint64_t rows_ = 0;  ///< In whole chunks, as these count them.
  std::int64_t last_time_ = 0;
  std::int64_t open_ranges_ = 0, open_steps_ = 0, stray_ends_ = 0, unexplained_ = 0, backwards_ = 0,
               odd_rows_ = 0, invalid_texts_ = 0;
};

}  // namespace foretrace
