#pragma once

// The input of an importer: a file, a member of an archive as "archive.tar.gz:member", or one trace
// of a file that contains several, such as a process of a report: "report.sqlite:1234". Its first
// bytes and its format are determined once, and it is unpacked at most once.

#include <cstdint>
#include <memory>
#include <string>

#include "import/files/source.h"

namespace foretrace {

class UnpackedFile;
struct ImporterEntry;

/// The format of a file, determined from its first bytes or its tables.
struct Contents {
  const ImporterEntry* importer = nullptr;  ///< The importer that reads it; null if there is none.
  bool is_archive = false;
  std::string other = {};  ///< If it is not a trace: the end of "must be a trace, but is ...".
};

class TraceFile {
 public:
  /// `path` is a file or a member of an archive. As in ImportOptions, it may unpack to at most
  /// `max_unpacked` bytes; 0 applies the default limits of UnpackBudget.
  TraceFile(std::string path, std::int64_t max_unpacked = 0);
  TraceFile(const char* path) : TraceFile(std::string(path)) {}
  /// The current member of an archive during walk_archive().
  TraceFile(std::string path, std::int64_t max_unpacked, std::unique_ptr<PeekedSource> member);

  /// The path as shown in messages and accepted from users, including the part.
  const std::string& path() const { return path_; }
  const std::string& part() const { return part_; }  ///< "1234", or empty.
  TraceFile with_part(const std::string& part) const;
  /// The path of the file on disk: this file itself, or the archive that contains it.
  const std::string& on_disk() const;

  /// The first bytes, decompressed. Throws TraceError if the file cannot be opened.
  const std::string& head() const;
  /// The format of the file. Throws TraceError if it cannot be opened.
  const Contents& contents() const;
  /// All bytes, decompressed. Throws TraceError if the file cannot be opened.
  std::unique_ptr<PeekedSource> open() const;
  std::int64_t max_unpacked() const;
  /// The budget of the source that open() returned last. Null for a member during walk_archive().
  std::shared_ptr<UnpackBudget> budget() const;
  /// The path of the file if it is neither compressed nor in an archive; null otherwise.
  const std::string* plain() const;
  /// All bytes, decompressed, in a file without a name. Throws TraceError if it cannot be unpacked.
  const UnpackedFile& unpacked() const;

 private:
  /// Shared by all parts of a file.
  struct SharedFile;

  std::string path_;
  std::string part_;
  std::shared_ptr<SharedFile> opened_;
};

/// The file that a user means by `path`. A number after the last ':' is a part if the text before
/// it is the path of a file that may contain several traces.
TraceFile named_file(const std::string& path, std::int64_t max_unpacked = 0);

}  // namespace foretrace
