#pragma once

// A Chrome trace in the form of PyTorch's profiler, while it is written: members that describe the
// recording, then one event after the other.
//
//     KinetoFile file("x.json.gz");
//     file.member("displayTimeUnit", "\"ms\"");
//     file.begin_events();
//     file.complete("kernel", "\"gemm\"", {0, 7}, 10us, 20us, "\"stream\": 7");
//     file.close();

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/packed_file.h"
#include "base/json_string.h"
#include "foretrace/units.h"

namespace foretrace {

/// Where an event is drawn.
struct Track {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  friend bool operator==(const Track&, const Track&) = default;
  friend auto operator<=>(const Track&, const Track&) = default;
};

class KinetoFile {
 public:
  /// Throws Error if `path` cannot be written; gzip if it ends in .gz.
  explicit KinetoFile(const std::string& path) : file_(path) {}

  /// A member of the object around the events, before them; `json` is its value.
  void member(std::string_view key, std::string_view json);
  void begin_events();

  /// A stretch of time. `name` is JSON text, quotes included; `arguments` are members of a JSON
  /// object, or empty.
  void complete(std::string_view category, std::string_view name, Track track, Nanoseconds start,
                Nanoseconds finish, std::string_view arguments);
  void instant(std::string_view category, std::string_view name, Track track, Nanoseconds time,
               std::string_view arguments);
  /// One end of an arrow; "ac2g" ones lead from a call to the work it launched.
  void arrow(bool is_end, std::int64_t id, Track track, Nanoseconds time,
             std::string_view category = "ac2g");
  void name_process(std::int64_t process, std::string_view name, std::int64_t position);
  void name_thread(Track track, std::string_view name, std::int64_t position);
  /// Other facts that viewers show for a track: `what` is "process_labels", for example.
  void describe(std::string_view what, Track track, std::string_view key, std::string_view json);

  /// Ends the file. Throws Error if anything could not be written.
  void close();

 private:
  void begin_event();
  void add(std::string_view text) { file_.write(text); }
  void add(std::int64_t value);
  void add_time(Nanoseconds time);  ///< In microseconds with three decimals.
  void add_place(Track track);

  PackedFile file_;
  bool first_member_ = true;
  bool first_ = true;
};

/// True of one whole value in JSON that is not nested too deeply to be read again.
bool is_json(std::string_view text);
/// A value of an argument: `text` itself where it is a list or an object in JSON, which recorded
/// shapes are, otherwise as a string.
std::string kineto_value(std::string_view text);

}  // namespace foretrace
