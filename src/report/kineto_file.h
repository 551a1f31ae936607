#pragma once

// A Chrome trace while it is written: one event after the other into a plain or gzip file.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// Where an event is drawn.
struct Track {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

class KinetoFile {
 public:
  /// Throws Error if `path` cannot be written; gzip if it ends in .gz.
  /// `devices` are names by ordinal; empty where not known.
  KinetoFile(const std::string& path, std::int32_t rank, std::int32_t world_size,
             const std::vector<std::string>& devices);
  ~KinetoFile();

  /// A stretch of time. `name` is JSON text, quotes included; `arguments` are members of a JSON
  /// object, or empty.
  void complete(std::string_view category, std::string_view name, Track track, Nanoseconds start,
                Nanoseconds finish, std::string_view arguments);
  void instant(std::string_view category, std::string_view name, Track track, Nanoseconds time,
               std::string_view arguments);
  /// One end of an arrow from a call to what it launched.
  void arrow(bool is_end, std::int64_t id, Track track, Nanoseconds time);
  void name_process(std::int64_t process, std::string_view name, std::int64_t position);
  void name_thread(Track track, std::string_view name, std::int64_t position);

  /// Ends the file. Throws Error if anything could not be written.
  void close();

 private:
  struct Sink;
  void begin_event();
  void add(std::string_view text);
  void add(std::int64_t value);
  void add_time(Nanoseconds time);  ///< In microseconds with three decimals.
  void add_place(Track track);
  void flush();

  std::unique_ptr<Sink> sink_;
  std::string path_;
  std::string buffer_;
  bool first_ = true;
  bool whole_ = false;  ///< Closed without an error.
};

/// `text` as a JSON string, quotes included; bytes that are not UTF-8 become replacement
/// characters.
std::string json_string(std::string_view text);

}  // namespace foretrace
