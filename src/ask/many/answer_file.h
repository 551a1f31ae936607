#pragma once

// A file of answers that grows while they are found. It can be cut off anywhere, by a kill or a
// full disk, and continued: whole lines are kept, a torn one is cut, and in the end the bytes are
// those of a run that was never stopped.
//
//     {"schema": ..., "points": 10000, ...}      the first line says which questions
//     {"point": 0, ...}                          a line for each, in their order
//
// A file of rows begins with a heading instead; its first line is in a file next to it.

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
  std::string header;     ///< The first line, with its line break; of this shard.
  std::string heading{};  ///< Of rows; empty: there are none.
  /// The reason, in words, why the file with this first line is not of the same questions; empty if
  /// it is.
  std::function<std::string(const std::string& line)> difference;
  /// Takes a line without its break. Throws Error if it is not one of this point.
  std::function<void(std::uint64_t number, std::string_view line)> known;
  std::string option = "--output";  ///< That names the file.
};

class AnswerFile {
 public:
  /// Opens or makes the file, and reads what it has. `fresh`: deletes that. Throws Error if it
  /// belongs to other questions, or if another process writes it.
  AnswerFile(std::string path, AnswerFileForm form, bool fresh);
  ~AnswerFile();
  AnswerFile(const AnswerFile&) = delete;
  AnswerFile& operator=(const AnswerFile&) = delete;

  /// The first point of the shard, and the one after its last.
  std::pair<std::uint64_t, std::uint64_t> points() const;
  /// The first point that the file did not have when it was opened.
  std::uint64_t next() const { return next_; }

  /// With its line break.
  void add(std::string_view line);
  /// Throws Error if it cannot be written; earlier output is kept.
  void flush();

 private:
  void read();
  void check_header(const std::string& line) const;
  void forget();
  void begin();
  void cut(std::uint64_t size);

  std::string path_;
  AnswerFileForm form_;
  SweepFileHeader header_;
  int file_ = -1;
  std::uint64_t next_ = 0;
  std::string waiting_;  ///< Not yet written.
};

/// For a file of rows, the file next to it with the first line.
std::string header_file_of(const std::string& path);

/// Merges files of shards, as one process would have written them. Throws Error naming parts that
/// are missing, double or of other questions.
void merge_answers(const std::vector<std::string>& files, const std::string& output,
                   const AnswerKind& kind, bool has_rows);

}  // namespace foretrace
