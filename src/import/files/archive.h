#pragma once

// Reads archives of traces, tar and zip, through libarchive. A member is named
// "archive.tar.gz:member" everywhere, also in messages. No file is ever written under the name of a
// member.

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/files/source.h"

struct archive;

namespace foretrace {

struct ArchivePath {
  std::string archive;
  std::string member;  ///< If empty, `archive` is the whole path.
};

/// Splits at the first ':' after the name of an existing file.
ArchivePath split_archive_path(const std::string& path);

/// Whether a file with these first bytes (512 or more) is an archive: a tar, or a zip whose name
/// ends in ".zip". Other zips do not count, because PyTorch saves its files as zips.
bool is_archive(std::string_view path, std::string_view head);

/// Walks over the members of an archive in one pass.
class ArchiveReader {
 public:
  enum class Form : std::uint8_t { archive, packed_file };

  /// REQUIRES: `bytes` outlives this. The unpacked bytes count against the budget, if there is one.
  /// A packed file (xz, bzip2) has its content as its only member.
  explicit ArchiveReader(Source& bytes, std::shared_ptr<UnpackBudget> budget = nullptr,
                         Form form = Form::archive);

  /// Goes to the next regular file. Returns false at the end; damage() then says whether the
  /// archive ends too early. Both next() and read() throw whatever `bytes` throws.
  bool next();

  const std::string& name() const { return name_; }
  /// Reads up to `room` bytes of the current member; returns 0 at its end. Holes read as zeros.
  std::size_t read(char* to, std::size_t room);
  /// Why the archive ends before its proper end; empty if it does not.
  const std::string& damage() const { return damage_; }

 private:
  struct Free {
    void operator()(struct archive* reader) const;
  };

  static std::ptrdiff_t give(struct archive* reader, void* self, const void** chunk);
  std::size_t take(char* to, std::size_t room, UnpackStage stage);
  void skip_member();
  void note_damage();

  Source& bytes_;
  std::shared_ptr<UnpackBudget> budget_;
  Form form_;
  std::vector<char> chunk_;
  std::exception_ptr thrown_;  ///< Thrown by `bytes_`, and thrown again after libarchive returns.
  bool at_end_ = false, in_member_ = false;
  std::string name_;
  std::string damage_;
  std::unique_ptr<struct archive, Free> reader_;
};

/// The current member of `archive` as a source. REQUIRES: `archive` outlives it, and nobody uses it
/// after archive.next().
std::unique_ptr<Source> member_source(ArchiveReader& archive);

/// Opens a member by its name and decompresses it. The result owns `archive`. Throws TraceError if
/// there is no such member.
std::unique_ptr<PeekedSource> open_member(std::unique_ptr<Source> archive, const std::string& name,
                                          std::shared_ptr<UnpackBudget> budget);

std::unique_ptr<Source> inflate_by_libarchive(std::unique_ptr<Source> compressed);

}  // namespace foretrace
