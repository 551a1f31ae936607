#pragma once

// Writes a Chrome trace in the form of PyTorch's profiler: first members that describe the
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
#include "base/json_text.h"
#include "foretrace/units.h"

namespace foretrace {

/// The row in which viewers draw an event.
struct Track {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  friend bool operator==(const Track&, const Track&) = default;
  friend auto operator<=>(const Track&, const Track&) = default;
};

class KinetoFile {
 public:
  /// Compresses with gzip if `path` ends in .gz. Throws Error if `path` cannot be written.
  explicit KinetoFile(const std::string& path) : file_(path) {}

  /// Writes a member of the object around the events; `json` is its value. REQUIRES: begin_events()
  /// has not been called.
  void member(std::string_view key, std::string_view json);
  void begin_events();

  /// Writes an event with a duration. `name` is JSON text, quotes included; `arguments` are members
  /// of a JSON object, or empty.
  void complete(std::string_view category, std::string_view name, Track track, Nanoseconds start,
                Nanoseconds finish, std::string_view arguments);
  void instant(std::string_view category, std::string_view name, Track track, Nanoseconds time,
               std::string_view arguments);
  /// Writes one end of an arrow. Arrows of category "ac2g" lead from a call to the work it
  /// launched.
  void arrow(bool is_end, std::int64_t id, Track track, Nanoseconds time,
             std::string_view category = "ac2g");
  void name_process(std::int64_t process, std::string_view name, std::int64_t position);
  void name_thread(Track track, std::string_view name, std::int64_t position);
  /// Writes another fact that viewers show for a track. `what` is "process_labels", for example.
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

/// Whether `text` is one whole JSON value that is not nested too deeply for readers.
bool is_json(std::string_view text);
/// The JSON value of an argument: `text` itself if it is a JSON list or object, such as recorded
/// shapes, otherwise a JSON string.
std::string kineto_value(std::string_view text);

}  // namespace foretrace
