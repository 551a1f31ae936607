#pragma once

// One event of a Perfetto trace, from a TrackEvent message, with the numbers of texts replaced by
// the texts.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/scan/protobuf.h"

namespace foretrace {

/// The texts that a sequence of packets refers to by number.
struct PerfettoTexts {
  std::unordered_map<std::uint64_t, std::string> categories, names, keys, texts;
  /// Adds the texts of an InternedData message.
  void add(std::string_view message);
};

struct PerfettoArgument {
  std::string_view key;
  std::string_view text;  ///< Empty for a number.
  std::int64_t number = 0;
};

struct PerfettoEvent {
  enum class Type : std::uint8_t { unknown, slice_begin, slice_end, instant, counter };
  Type type = Type::unknown;
  std::uint64_t track = 0;
  bool has_track = false;
  bool is_legacy = false;
  std::string_view name, category;
  std::vector<PerfettoArgument> arguments;

  /// Parses a TrackEvent message. The texts of the event are views into `message` and `texts`.
  void read(std::string_view message, const PerfettoTexts& texts);

  std::int64_t number(std::string_view key, std::int64_t otherwise) const;
  std::string_view text(std::string_view key) const;

 private:
  void read_argument(std::string_view message, const PerfettoTexts& texts);
};

}  // namespace foretrace
