#pragma once

// An Nsight Systems report (.nsys-rep, .qdrep) that its own program, nsys, exports as a database.

#include <optional>
#include <string>

#include "base/files/temporary_file.h"
#include "foretrace/error.h"
#include "foretrace/import.h"

namespace foretrace {

/// The database exists as long as this object, in a folder that only this user may enter.
class ExportedReport {
 public:
  /// Exports the report in `path` if `options` allow to run a program and nsys is in a folder of
  /// the PATH; `path` may end in the number of a process, as in "report.nsys-rep:1234". Nothing
  /// happens for other files. Throws TraceError if nsys fails, takes longer than ten minutes, or
  /// writes more than the limit on unpacked bytes (16 GiB unless set).
  ExportedReport(const std::string& path, const ImportOptions& options);
  ExportedReport(const ExportedReport&) = delete;
  ExportedReport& operator=(const ExportedReport&) = delete;
  ~ExportedReport();

  bool exists() const { return !folder_.empty(); }
  /// The file to read, with the number of the process.
  std::string path() const { return database() + member_; }
  /// `options` for reading it: no copy is cached under its passing name.
  static ImportOptions reading(ImportOptions options);

  /// Calls `read`, whose errors name the report.
  template <class Read>
  auto read(const Read& read) const {
    try {
      return read();
    } catch (const TraceError& error) {
      throw TraceError(renamed(error.what()));
    }
  }
  void rename(Trace& trace) const;

 private:
  ExportedReport() = default;
  const std::string& database() const { return database_->path(); }
  /// `text` with the name of the report in place of the database's.
  std::string renamed(std::string text) const;
  void run(const std::string& program, std::int64_t most_bytes) const;
  std::string last_line_of_log() const;

  std::string report_, member_, folder_;
  /// In the folder; signals delete them, too.
  std::optional<TemporaryFile> database_, log_;
};

}  // namespace foretrace
