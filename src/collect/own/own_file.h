#pragma once

// A file of the recorder's, of which nothing is believed but what fstat() says: its number stands
// for our file only as long as device and inode are those of the file that was opened. What has
// another file at that number is left alone, and ours is opened again by its path.
//
// REQUIRES: everything but close() after a fork is called on the FileThread.

#include <climits>
#include <cstddef>
#include <cstdint>

#include "collect/own/file_identity.h"

namespace foretrace::collect {

class OwnFile {
 public:
  /// Creates or empties it, whatever the umask, for this user alone. Returns 0 or an errno.
  int create(const char* path);
  bool is_open() const { return descriptor_ >= 0; }
  /// The program closed it, and it cannot be opened again.
  bool is_gone() const { return is_gone_; }

  /// Returns 0 or an errno; what was written may then be a part. Goes on after short writes.
  int write_at(const char* bytes, std::size_t size, std::uint64_t offset);
  /// Takes away what lies behind.
  void cut(std::uint64_t size);
  void close();

 private:
  bool holds();
  int move_up(int descriptor) const;

  int descriptor_ = -1;
  bool is_gone_ = false;
  FileIdentity identity_;
  char path_[PATH_MAX] = {};
};

}  // namespace foretrace::collect
