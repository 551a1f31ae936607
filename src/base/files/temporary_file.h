#pragma once

// A file that exists only while it is written: it is deleted with its object, unless it takes the
// place of another file. A program that a signal ends runs no destructors; one that called
// delete_temporaries_on_signals() deletes its temporary files even then.

#include <sys/types.h>

#include <string>

namespace foretrace {

class TemporaryFile {
 public:
  /// Makes ".NAME.XXXXXXXX" in `folder` and opens it for reading and writing. The dot keeps what a
  /// killed program leaves from being taken for a trace of that folder. `rights` are reduced by the
  /// umask. Throws std::system_error.
  TemporaryFile(const std::string& folder, const std::string& name, ::mode_t rights);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  /// The rest is for files that stay. Each returns false, with errno, if it fails.
  bool close();
  /// Renames the closed file to `path`; whatever was there is replaced at once.
  bool replace(const std::string& path);

 private:
  std::string path_;
  int descriptor_ = -1;
  int slot_ = -1;  ///< In the list of what signals delete; negative: not in it.
};

/// Deletes all temporary files of this process when it is interrupted, asked to end or hung up;
/// then the signal does what it did before, so that the exit status is right. Signals that are
/// ignored stay ignored. Writing beyond a limit on the size of files becomes an error of the write,
/// rather than the end of the program. For main() alone: signals belong to the program, not to a
/// library.
void delete_temporaries_on_signals();

}  // namespace foretrace
