#pragma once

// A file of answers that grows while they are computed. It may be cut off anywhere, by a kill or a
// full disk, and continued: whole lines are kept, a torn one is cut, and in the end the bytes are
// those of a run that was never stopped.
//
//     {"schema": ..., "points": 10000, ...}      the first line identifies the questions
//     {"point": 0, ...}                          one line for each answer, in order
//
// A file of rows begins with a heading instead; the line that identifies the questions is in a file
// next to it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/answer/sweep.h"

namespace foretrace {

struct AnswerFileForm {
  AnswerKind kind;
  std::string header;     ///< First line, with its line break, for this shard.
  std::string heading{};  ///< Heading of a file of rows, with its line break; empty otherwise.
  /// Returns the reason why the file with this first line belongs to other questions; empty if it
  /// does not.
  std::function<std::string(const std::string& line)> difference;
  /// Called with each known line, without its break. Throws Error if it is no answer to this point.
  std::function<void(std::uint64_t number, std::string_view line)> on_known_line;
  std::string option = "--output";  ///< Option that names the file.
};

class AnswerFile {
 public:
  /// Opens or creates the file, and reads its answers; `fresh` deletes them. Throws Error if it
  /// belongs to other questions, or if another process is writing it.
  AnswerFile(std::string path, AnswerFileForm form, bool fresh);
  ~AnswerFile();
  AnswerFile(const AnswerFile&) = delete;
  AnswerFile& operator=(const AnswerFile&) = delete;

  /// The first point of the shard, and the one after its last.
  std::pair<std::uint64_t, std::uint64_t> points() const;
  /// The first point that the file did not have when it was opened.
  std::uint64_t next() const { return next_; }

  /// Adds a line, with its line break, which flush() writes.
  void add(std::string_view line);
  /// Throws Error if the file cannot be written; earlier output is kept.
  void flush();

 private:
  void read();
  void check_header(const std::string& line) const;
  void erase_answers();
  void write_header();
  void truncate(std::uint64_t size);

  std::string path_;
  AnswerFileForm form_;
  SweepFileHeader header_;
  int file_ = -1;
  std::uint64_t next_ = 0;
  std::string unwritten_;
};

/// The file next to a file of rows, which contains the line that identifies the questions.
std::string header_file_of(const std::string& path);

/// Merges files of shards into the file that one process would have written. Throws Error if parts
/// are missing, occur twice, or belong to other questions.
void merge_answers(const std::vector<std::string>& files, const std::string& output,
                   const AnswerKind& kind, bool has_rows);

}  // namespace foretrace
