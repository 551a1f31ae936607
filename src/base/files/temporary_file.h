#pragma once

// A file that exists only while it is written: it is deleted with its object, unless it replaces
// another file. A program that is ended by a signal runs no destructors; if it called
// delete_temporaries_on_signals(), its temporary files are deleted even then.

#include <sys/types.h>

#include <string>

namespace foretrace {

class TemporaryFile {
 public:
  /// Creates ".NAME.XXXXXXXX" in `folder` and opens it for reading and writing. The leading dot
  /// keeps a file left by a killed program from being read as a trace of that folder. `rights` are
  /// reduced by the umask. Throws std::system_error.
  TemporaryFile(const std::string& folder, const std::string& name, ::mode_t rights);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  /// The following functions return false, with errno set, if they fail.
  bool close();
  /// Renames the closed file to `path`; an existing file is replaced atomically.
  bool replace(const std::string& path);

 private:
  std::string path_;
  int descriptor_ = -1;
  int slot_ = -1;  ///< Index in the list of files that signals delete; negative if not in it.
};

/// Deletes all temporary files of this process when it is interrupted, terminated or hung up; then
/// the signal takes its default effect, so that the exit status is right. Ignored signals stay
/// ignored. Writing beyond a file size limit fails with an error instead of ending the program.
/// Call it only from main(): signals belong to the program, not to a library.
void delete_temporaries_on_signals();

}  // namespace foretrace
