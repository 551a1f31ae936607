#pragma once

// Archives of traces. A member is named "archive.tar.gz:member" everywhere, also in messages.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "import/source.h"

namespace foretrace {

struct ArchivePath {
  std::string archive;
  std::string member;  ///< Empty: `archive` is the whole path.
};

/// Splits at the first ':' behind the name of a file that exists.
ArchivePath split_archive_path(const std::string& path);

/// Whether these first bytes (512 or more) open a tar archive.
bool is_tar(std::string_view head);

/// Walks over the members of a decompressed archive in one pass.
class TarReader {
 public:
  explicit TarReader(Source& bytes) : bytes_(bytes) {}

  /// Goes to the next regular file, past what is left of this one. False at the end.
  bool next();

  const std::string& name() const { return name_; }
  /// Of the current member; 0 at its end.
  std::size_t read(char* to, std::size_t room);
  /// Whether the archive stops inside the current member.
  bool cut() const { return cut_; }
  /// Once next() has returned false: why there may have been more members, as Source::damage() says
  /// it; empty where the archive ends as it should.
  std::string damage() const;

 private:
  std::size_t read_fully(char* to, std::size_t size);
  void end(std::string_view block);
  std::string read_text(std::uint64_t size);
  std::uint64_t skip(std::uint64_t size);  ///< How much of it was not there.

  Source& bytes_;
  std::string name_;
  std::uint64_t left_ = 0;
  std::uint64_t padding_ = 0;
  bool cut_ = false;
  bool ends_early_ = false;
};

/// The current member of `tar` as a source; it may not outlive `tar` or be used after tar.next().
std::unique_ptr<Source> member_source(TarReader& tar);

/// Throws TraceError if there is no such member.
std::unique_ptr<PeekedSource> open_member(const ArchivePath& path);

}  // namespace foretrace
