#pragma once

// Everything in a spool that its records refer to by number: names, threads, streams, clocks. Read
// before the records, because chunks that explain them may be written after them.

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
  /// Reads all chunks. Both must outlive this.
  SpoolIndex(const SpoolFile& file, Trace& trace);

  /// Empty if it is not known.
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
  /// On the device of the context.
  std::uint16_t stream(std::uint32_t context, std::uint32_t stream);
  std::int64_t on_device_clock(std::uint64_t monotonic) const;
  /// The clock's value at time 0.
  std::int64_t base_ns() const;
  std::size_t rows_of(spool::RowKind kind) const {
    return row_counts_[static_cast<std::size_t>(kind)];
  }

  /// Gives threads and streams what is known of them, and notes what was lost.
  void finish();

  std::vector<spool::Event> events;
  std::unordered_map<std::string, std::string> facts;
  std::vector<std::string> problems, not_recorded;
  SpoolFile::Damage damage;
  std::uint64_t rows = 0;  ///< In whole chunks, as these count them.
  std::int64_t lost_names = 0, invalid_texts = 0;

 private:
  void learn(const SpoolFile::Chunk& chunk);
  void learn_texts(std::string_view body, std::uint32_t count);
  std::string_view valid(std::string_view text);
  void learn_facts(std::string_view body, std::uint32_t count);
  void learn_rows(std::string_view body);

  const spool::Header& header_;
  Trace& trace_;
  std::size_t most_texts_;  ///< Numbers of texts that the file can hold.
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
  std::unordered_set<std::uint32_t> named_by_program_;  ///< Threads.
  std::uint64_t last_stream_key_ = ~std::uint64_t{0};
  std::uint16_t last_stream_ = 0;
  std::uint32_t last_thread_id_ = ~std::uint32_t{0};
  std::uint16_t last_thread_ = 0;
  std::array<std::size_t, static_cast<std::size_t>(spool::RowKind::count)> row_counts_{};
};

/// A time that can be subtracted from any other; only damage causes later ones.
std::int64_t sound_time(std::uint64_t time);

}  // namespace foretrace
