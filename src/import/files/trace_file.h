#pragma once

// The input of an importer: a file, a member of an archive as "archive.tar.gz:member", or one trace
// of a file that contains several, such as the process of a report: "report.sqlite:1234". What it
// is and how it begins is found out once, and it is unpacked only once.

#include <cstdint>
#include <memory>
#include <string>

#include "import/files/source.h"

namespace foretrace {

class UnpackedFile;
struct ImporterEntry;

/// The nature of a file, found at the first look.
struct Contents {
  const ImporterEntry* importer = nullptr;  ///< Reads the trace in it; null if there is none.
  bool is_archive = false;
  std::string other = {};  ///< Where there is no trace: the end of "must be a trace, but is ...".
};

class TraceFile {
 public:
  /// The path of a file or of a member of an archive. As in ImportOptions, at most `max_unpacked`
  /// bytes may come out of it; 0 applies the limit of UnpackBudget.
  TraceFile(std::string path, std::int64_t max_unpacked = 0);
  TraceFile(const char* path) : TraceFile(std::string(path)) {}
  /// The current member of an archive that is being walked over.
  TraceFile(std::string path, std::int64_t max_unpacked, std::unique_ptr<PeekedSource> member);

  /// As shown in messages, and as the user may write it.
  const std::string& path() const { return path_; }
  const std::string& part() const { return part_; }  ///< "1234", or empty.
  TraceFile with_part(const std::string& part) const;
  /// The file on disk that it is, or is in.
  const std::string& on_disk() const;

  /// The first bytes, decompressed. Throws TraceError if the file cannot be opened.
  const std::string& head() const;
  /// Its nature, by its first bytes or its tables. Throws TraceError if it cannot be opened.
  const Contents& contents() const;
  /// All bytes, decompressed. Throws TraceError.
  std::unique_ptr<PeekedSource> open() const;
  std::int64_t max_unpacked() const;
  /// The budget of the bytes that open() returned last. Empty for the member of a walk.
  std::shared_ptr<UnpackBudget> budget() const;
  /// The path of the file if it can be read directly: not packed, not in an archive.
  const std::string* plain() const;
  /// All bytes, decompressed, in a file without a name. Throws TraceError.
  const UnpackedFile& unpacked() const;

 private:
  /// Shared by all parts of a file.
  struct Opened;

  std::string path_;
  std::string part_;
  std::shared_ptr<Opened> opened_;
};

/// The file that a user names by `path`: with a part if a number follows the last ':' and a
/// database precedes it.
TraceFile named_file(const std::string& path, std::int64_t max_unpacked = 0);

/// TraceFile(path).open().
inline std::unique_ptr<PeekedSource> open_source(const std::string& path) {
  return TraceFile(path).open();
}

}  // namespace foretrace
