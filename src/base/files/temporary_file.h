#pragma once

// A file that exists only while it is written: it is deleted with its object, unless it takes the
// place of another file. A program that a signal ends runs no destructors; one that called
// delete_temporaries_on_signals() deletes its temporary files even then.

#include <sys/types.h>

#include <string>

namespace foretrace {

class TemporaryFile {
 public:
  /// Makes ".NAME.XXXXXXXX" in `folder` and opens it for reading and writing. Because of the dot, a
  /// file left by a killed program is not taken for a trace of that folder. `rights` are reduced by
  /// the umask. Throws std::system_error.
  TemporaryFile(const std::string& folder, const std::string& name, ::mode_t rights);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  /// The rest is for files that stay. Each returns false, with errno, if it fails.
  bool close();
  /// Renames the closed file to `path`; an existing file is replaced atomically.
  bool replace(const std::string& path);

 private:
  std::string path_;
  int descriptor_ = -1;
  int slot_ = -1;  ///< Index in the list of files that signals delete; negative: not in it.
};

/// Deletes all temporary files of this process when it is interrupted, terminated or hung up; then
/// the signal takes its previous effect, so that the exit status is right. Signals that are ignored
/// stay ignored. Writing beyond a limit on the size of files becomes an error of the write instead
/// of ending the program. For main() alone: signals belong to the program, not to a library.
void delete_temporaries_on_signals();

}  // namespace foretrace
