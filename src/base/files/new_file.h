#pragma once

// The only way to write files. Output goes into a temporary file next to the target, which replaces
// the target when it is complete: a reader finds the old file or the new one, and a full disk or a
// kill never loses the old one.
//
//     NewFile file("result.json");
//     file.write(text);
//     file.commit();
//
// An existing file keeps its rights and, if the user may change owners, its owner. A symbolic link
// stays, and its target is replaced. Other hard links of the file keep the old contents. A file
// that is not writable, or in a folder that is not, is refused. Pipes and devices, such as
// /dev/stdout, are written directly.

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace foretrace {

class TemporaryFile;

/// The file that a path leads to.
struct FileTarget {
  std::string path;  ///< The path after resolving all symbolic links.
  /// A file that this process has open (/dev/stdout, /dev/fd/3); otherwise -1.
  int descriptor = -1;
};

/// Follows links, even dangling ones. Throws Error if a folder on the way is missing.
FileTarget follow_links(const std::string& path);

struct NewFileOptions {
  /// For private copies that can be recreated: only the owner may read the file, a link is replaced
  /// instead of its target, and nothing waits for the disk.
  bool is_private = false;
};

/// All functions throw Error "cannot write 'path': why".
class NewFile {
 public:
  explicit NewFile(std::string path, NewFileOptions options = {});
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  /// Deletes the output unless it was committed.
  ~NewFile();

  void write(std::string_view bytes);
  /// Moves the file to its target, durably. REQUIRES: called once; nothing is written after it.
  void commit();

  /// For libraries that write by themselves: use the descriptor or, unless is_stream(), the path.
  int descriptor() const;
  const std::string& temporary_path() const;
  /// Whether the target is a pipe or device, which has no temporary file.
  bool is_stream() const { return temporary_ == nullptr; }
  [[noreturn]] void fail(int error) const;

 private:
  void open();
  void open_stream(const FileTarget& target);
  void give_rights() const;

  std::string path_;
  std::string target_;
  NewFileOptions options_;
  std::unique_ptr<TemporaryFile> temporary_;
  int stream_ = -1;
};

/// Writes a whole file at once.
void write_new_file(const std::string& path, std::string_view bytes, NewFileOptions options = {});

/// Writes a file through the stream that `write` is called with.
void write_new_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace foretrace
