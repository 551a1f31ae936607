#pragma once

// Settings of how recordings are read, which questions list among their own.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/import.h"
#include "foretrace/question.h"

namespace foretrace {

class Reading {
 public:
  void describe(Fields& fields);
  /// Only a part of a recording is read: "steps" and "window".
  void describe_part(Fields& fields);
  void describe_execution_trace(Fields& fields);

  /// The part that is asked for. Throws Error if it is not valid.
  Part part() const;
  /// Throws Error on an invalid range.
  ImportOptions options(const Session& session) const;
  /// Reads all of a recording, whatever part is asked for.
  std::vector<Trace> read_whole(const std::string& path) const;

 private:
  ImportOptions whole() const;

  bool no_cache_ = false, no_run_ = false;
  std::string cache_folder_, execution_trace_, capture_, steps_, window_;
  std::optional<Bytes> max_unpacked_;
};

/// Lists the setting "trace", of questions about one recording.
void describe_trace(Fields& fields, std::string& trace,
                    std::string_view help = "A trace, or a folder with the traces of all ranks");

/// Says, before a large recording is read, what that costs and how to read only a part of it. Does
/// nothing if only a part is read.
void warn_if_large(const std::string& path, const ImportOptions& reading, Session& session);

}  // namespace foretrace
