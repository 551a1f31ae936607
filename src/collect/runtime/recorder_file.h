#pragma once

// A file of the recorder, in a process whose program may close any descriptor. Before each use,
// fstat() must confirm that the descriptor still refers to the device and inode that were opened.
// If another file has got the number, it is left alone, and ours is opened again by its path.
//
// REQUIRES: all functions are called on the FileThread, except close() after a fork.

#include <climits>
#include <cstddef>
#include <cstdint>

#include "collect/runtime/file_identity.h"

namespace foretrace::collect {

class RecorderFile {
 public:
  /// Creates or empties the file. Only this user can access it, whatever the umask. Returns 0 or an
  /// errno.
  int create(const char* path);
  bool is_open() const { return descriptor_ >= 0; }
  /// Whether the program closed the file and it cannot be opened again.
  bool is_lost() const { return is_lost_; }

  /// Writes all bytes, also after short writes. Returns 0, or an errno; then a part may be written.
  int write_at(const char* bytes, std::size_t size, std::uint64_t offset);
  /// Cuts the file to this size.
  void truncate(std::uint64_t size);
  void close();

 private:
  bool ensure_open();
  int move_to_high_number(int descriptor) const;

  int descriptor_ = -1;
  bool is_lost_ = false;
  FileIdentity identity_;
  char path_[PATH_MAX] = {};
};

}  // namespace foretrace::collect
