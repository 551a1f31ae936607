#pragma once

// The parts of the reader of PyTorch's memory snapshots, which turns the lists of a snapshot into
// records of a Trace.

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretrace/trace.h"
#include "import/common/huge_sizes.h"
#include "import/torch_memory/pickle.h"

namespace foretrace {

/// Throws TraceError if `text` is not JSON.
PlainData read_plain_json(std::string text);

/// The value as compact JSON text. Empty if the text is longer than `most` bytes or nests too
/// deeply, as it does for a value that contains itself.
std::string to_json_text(const PlainData& data, PlainValue value, std::size_t most);

/// At most 1 MiB of the text, with U+FFFD in place of invalid UTF-8.
std::string valid_text(std::string_view text);

/// Converts stacks to texts, each list of frames once. The total size of the texts is bounded,
/// because a small pickle can refer to the same long frame many times.
class SnapshotStacks {
 public:
  SnapshotStacks(const PlainData& data, Names& names, std::size_t file_size);

  /// The text of a list of frames {filename, line, name}, innermost first. Empty once the budget is
  /// spent.
  NameId stack(PlainValue frames);
  std::int64_t left_out() const { return left_out_; }

 private:
  std::string_view frame(PlainValue frame);
  std::string frame_text(PlainValue frame) const;
  void spend(std::size_t bytes);

  const PlainData& data_;
  Names& names_;
  std::size_t budget_;                                ///< Bytes of text that are still allowed.
  std::unordered_map<std::uint64_t, NameId> stacks_;  ///< By the identity of the list.
  std::unordered_map<std::uint64_t, std::string> frames_;  ///< By the identity of the dict.
  std::int64_t left_out_ = 0;
};

/// The allocator's settings for rounding and splitting; by default PyTorch's.
struct AllocatorRules {
  std::int64_t max_split_bytes = -1;  ///< -1: unlimited.
  /// Number of divisions between two powers of two. The first entry is for sizes from 2^20 on, each
  /// following one for twice the size.
  std::vector<std::int64_t> divisions;

  std::int64_t rounded(std::int64_t bytes) const;
  bool splits(std::int64_t rounded_bytes, std::int64_t rest) const;
};

AllocatorRules read_rules(const PlainData& data, PlainValue settings);

/// The events of one device.
struct DeviceHistory {
  std::int32_t device = 0;
  std::size_t first = 0, last = 0;  ///< Indices into Trace::memory; `last` is one past the end.
};

struct HistoryFit {
  std::int64_t entries_missing = 0;  ///< Events that contradict the state before them.
  std::int64_t other_sizes = 0;      ///< Blocks that have another size in the snapshot.
  std::int64_t start_allocated = 0, start_reserved = 0;
  std::int64_t mismatched_bytes =
      0;  ///< Bytes of blocks that are in use only in the history or only in the snapshot.
};

/// Sets total_allocated and total_reserved of every event.
HistoryFit fill_levels(const DeviceHistory& history, const AllocatorRules& rules, Trace& trace);

/// Reads segments, blocks, events, annotations and settings.
class SnapshotReader {
 public:
  SnapshotReader(const PlainData& data, std::size_t file_size)
      : data_(data), stacks_(data, trace_.names, file_size) {}

  Trace read();

 private:
  enum class Oddity : std::uint8_t {
    no_dict,
    no_address,
    bad_size,
    unknown_action,
    unknown_state,
    no_time,
    bad_time,
    uncovered,
    shared,
    repeated,
    bad_device,
    unpaired,
    count
  };

  std::int64_t integer(PlainValue dict, std::string_view key, std::int64_t otherwise) const;
  NameId text(PlainValue dict, std::string_view key);
  std::uint32_t stream(std::int32_t device, std::int64_t id);
  void count(Oddity oddity, const std::string& example);
  bool is_new_list(PlainValue list, const std::string& example);

  void read_segments(PlainValue segments);
  void read_segment(PlainValue segment, const std::string& place);
  void read_blocks(PlainValue blocks, std::uint32_t segment, const std::string& place);
  bool read_block(PlainValue value, std::uint64_t expected, MemoryBlock& block,
                  const std::string& place);

  void read_histories(PlainValue traces);
  void read_history(PlainValue events, std::int32_t device);
  bool read_event(PlainValue event, MemoryRecord& record, const std::string& place);
  bool read_time(PlainValue event, std::int64_t& time_ns, const std::string& place);

  void read_annotations(PlainValue annotations);
  void read_annotation(PlainValue annotation, const std::string& place);
  std::uint16_t thread(std::int32_t device);
  void read_metadata(PlainValue key, PlainValue value);

  void normalize_times();
  void fill_all_levels();
  void write_notes();

  struct OpenAnnotation {
    std::int64_t start_ns;
    std::uint16_t thread;
    NameId name;
  };

  const PlainData& data_;
  Trace trace_;
  SnapshotStacks stacks_;
  AllocatorRules rules_;
  std::vector<DeviceHistory> histories_;
  std::map<std::pair<std::int32_t, std::int64_t>, std::uint32_t> streams_;
  std::map<std::int32_t, std::uint16_t> threads_;
  std::unordered_set<std::uint64_t> lists_;  ///< Lists that were read; see is_new_list().
  std::vector<OpenAnnotation> open_;         ///< Annotations without an end so far.
  std::int64_t timed_ = 0, untimed_ = 0;
  std::int64_t last_time_ns_ = 0;
  PlausibleSizes sizes_;
  std::pair<std::int64_t, std::string> odd_[static_cast<std::size_t>(Oddity::count)];
};

}  // namespace foretrace
