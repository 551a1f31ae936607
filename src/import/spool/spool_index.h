#pragma once

// Everything in a spool that its records refer to by number: names, threads, streams, clocks. It is
// read before the records, because it may follow them in the file.

#include <array>
#include <cstdint>
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

class SpoolIndex {
 public:
  /// Reads all chunks. REQUIRES: `file` and `trace` outlive this.
  SpoolIndex(const SpoolFile& file, Trace& trace);

  /// The text of this number; empty if it is unknown.
  std::string_view text(std::uint32_t number) const {
    return number < texts_.size() ? texts_[number] : std::string_view();
  }
  bool knows(std::uint32_t text) const { return text < texts_.size(); }
  NameId intern(std::string_view text) { return intern_.intern(text); }
  NameId name(std::uint32_t text);
  NameId call_name(std::uint16_t domain, std::uint32_t callback);
  std::uint16_t thread(std::uint32_t id);
  void name_thread(const spool::ThreadName& row);
  std::uint16_t stream(std::uint32_t device, std::uint32_t context, std::uint32_t stream);
  /// A stream on the device of the context.
  std::uint16_t stream(std::uint32_t context, std::uint32_t stream);
  std::int64_t on_device_clock(std::uint64_t monotonic) const;
  /// The time of day, in nanoseconds, at time 0 of the device clock; 0 if that clock is realtime or
  /// the file has no reading of both clocks.
  std::int64_t base_ns() const;
  std::size_t rows_of(spool::RowKind kind) const {
    return row_counts_[static_cast<std::size_t>(kind)];
  }

  /// Names the threads and stores the flags of the streams in the trace.
  void finish();

  std::vector<spool::Event> events;
  std::unordered_map<std::string, std::string> facts;
  std::vector<std::string> problems, not_recorded;
  SpoolFile::Damage damage;
  std::uint64_t rows = 0;  ///< Number of rows in intact chunks, according to their headers.
  std::int64_t lost_names = 0, invalid_texts = 0;

 private:
  void learn(const SpoolFile::Chunk& chunk);
  void learn_texts(std::string_view body, std::uint32_t count);
  std::string_view valid(std::string_view text);
  void learn_facts(std::string_view body, std::uint32_t count);
  void learn_rows(std::string_view body);

  const spool::Header& header_;
  Trace& trace_;
  std::size_t most_texts_;  ///< Texts with this number or a higher one are rejected.
  InternCache intern_;
  KinetoLanes lanes_;
  std::vector<NameId> names_;            ///< By number of text; 0 before the first use.
  std::vector<std::string_view> texts_;  ///< Views into the file or `repaired_`.
  std::deque<std::string> repaired_;
  std::vector<NameId> call_names_[3];         ///< By domain and callback; 0 before the first use.
  std::vector<std::uint32_t> call_texts_[3];  ///< The same names as numbers of texts.
  std::vector<spool::Clocks> clocks_;
  std::unordered_map<std::uint32_t, std::uint32_t> device_of_context_;
  /// The context that keeps a stream number of a device: (device, stream) -> context.
  std::unordered_map<std::uint64_t, std::uint32_t> owner_of_stream_;
  std::unordered_map<std::uint64_t, std::uint16_t> streams_;
  std::unordered_map<std::uint64_t, StreamFlag> flags_;  ///< By the same key as `streams_`.
  std::unordered_map<std::uint32_t, std::uint16_t> thread_numbers_;
  std::unordered_set<std::uint32_t> named_by_program_;  ///< Threads whose name the program set.
  std::uint64_t last_stream_key_ = ~std::uint64_t{0};
  std::uint16_t last_stream_ = 0;
  std::uint32_t last_thread_id_ = ~std::uint32_t{0};
  std::uint16_t last_thread_ = 0;
  std::array<std::size_t, static_cast<std::size_t>(spool::RowKind::count)> row_counts_{};
};

/// Clamps a time so that differences cannot overflow; only damaged files have later times.
std::int64_t sound_time(std::uint64_t time);

}  // namespace foretrace
