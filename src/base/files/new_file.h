#pragma once

// The only way in which files are written. Output goes into a temporary file next to the target,
// which replaces the target when it is complete: a reader finds the old file or the new one, and a
// full disk or a kill never loses the old one.
//
//     NewFile file("result.json");
//     file.write(text);
//     file.commit();
//
// An existing file keeps its rights and, if the user may change owners, its owner. A symbolic link
// stays, and its target is replaced. Other names of a file with several (hard links) keep the old
// contents. A file without the right to write, or in a folder without it, is refused. Pipes and
// devices, such as /dev/stdout, are written as they are.

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace foretrace {

class TemporaryFile;

/// Where a path leads to.
struct FileTarget {
  std::string path;     ///< The path after resolving all symbolic links.
  int descriptor = -1;  ///< /dev/stdout, /dev/fd/3: a file that this process has open.
};

/// Follows links, also those that lead to nothing yet. Throws Error if a folder on the way is
/// missing.
FileTarget follow_links(const std::string& path);

struct NewFileOptions {
  /// For private copies that can be made again: only the owner may read it, a link is replaced
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
  /// Puts the file in its place, safe on disk. REQUIRES: called once; nothing is written after it.
  void commit();

  /// For libraries that write by themselves: by descriptor or, unless it is a stream, by path.
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

/// A whole file at once.
void write_new_file(const std::string& path, std::string_view bytes, NewFileOptions options = {});

/// Writes the output of `write` to the stream.
void write_new_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace foretrace
