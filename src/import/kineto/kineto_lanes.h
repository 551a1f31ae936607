#pragma once

// Numbers the threads and streams of a trace. Profilers identify them by numbers, by numbers in
// quotes, by "stream 7", or by any other text.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"
#include "import/scan/json_scan.h"

namespace foretrace {

/// Numbers pairs of integers from 0, in order of first use. Takes amortised constant time.
class PairTable {
 public:
  /// The number of a pair. Sets `is_new` to whether the pair had no number before.
  std::uint32_t number(std::int64_t a, std::int64_t b, bool& is_new);
  std::uint32_t size() const { return count_; }

 private:
  struct Slot {
    std::int64_t a = 0, b = 0;
    std::uint32_t number = kNone;
  };
  Slot& slot(std::int64_t a, std::int64_t b);
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::uint32_t count_ = 0;
};

class KinetoLanes {
 public:
  explicit KinetoLanes(Trace& trace) : trace_(trace) {}

  /// The number in a pid or tid. A text without a number gets its own, at most -1000000.
  std::int64_t identity(const JsonValue& value);

  std::uint16_t thread(std::int64_t process, std::int64_t id);
  std::uint16_t stream(std::int64_t device, std::int64_t id);

  /// Stores a name from a metadata event, which may come before or after the events of the thread.
  void name_thread(std::int64_t process, std::int64_t id, std::string_view name);
  void name_process(std::int64_t process, std::string_view name);
  /// The name of a process; empty if it has none.
  std::string_view process_name(std::int64_t process) const;

  /// Names the threads, and adds a note if there were more lanes than a trace can number.
  void finish();

 private:
  struct LaneName {
    std::int64_t process, id;
    std::string name;
  };

  Trace& trace_;
  PairTable threads_;
  PairTable streams_;
  Names texts_;  ///< Texts that stand for a pid or tid.
  std::vector<LaneName> thread_names_;
  std::map<std::int64_t, std::string> process_names_;
  std::int64_t too_many_ = 0;
};

}  // namespace foretrace
