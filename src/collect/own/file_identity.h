#pragma once

#include <sys/stat.h>

namespace foretrace::collect {

/// Which file a descriptor refers to. A number alone says nothing: the program may have closed the
/// descriptor, and the number may stand for a file of its own by now.
struct FileIdentity {
  bool known = false;  ///< False of a descriptor that is not open.
  dev_t device = 0;
  ino_t inode = 0;

  static FileIdentity of(int descriptor) {
    struct stat found {};
    if (descriptor < 0 || ::fstat(descriptor, &found) != 0) return {};
    return {true, found.st_dev, found.st_ino};
  }
  static FileIdentity at(const char* path) {
    struct stat found {};
    if (::lstat(path, &found) != 0) return {};
    return {true, found.st_dev, found.st_ino};
  }
  /// False if either is not known.
  bool is(const FileIdentity& other) const {
    return known && other.known && device == other.device && inode == other.inode;
  }
};

}  // namespace foretrace::collect
