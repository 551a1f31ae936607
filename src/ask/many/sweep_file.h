#pragma once

// A file of answers that grows while a sweep runs. It can be cut off anywhere, by a kill or a full
// disk, and continued: whole lines are kept, a torn one is cut, and in the end the bytes are those
// of a run that was never stopped.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ask/many/shard.h"
#include "foretrace/ask/sweep.h"

namespace foretrace {

class SweepFile {
 public:
  /// Opens or makes the file, and reads its answers. `fresh`: deletes them. Throws Error if it
  /// belongs to another sweep, or if another process writes it.
  SweepFile(std::string path, const SweepHeader& header, SweepForm form, bool fresh);
  ~SweepFile();
  SweepFile(const SweepFile&) = delete;
  SweepFile& operator=(const SweepFile&) = delete;

  /// Answers that were already there.
  std::vector<SweepPoint>& answered() { return answered_; }

  void add(const SweepPoint& point);
  /// Throws Error if it cannot be written; earlier output is kept.
  void flush();

 private:
  void read();
  void check_header(const std::string& line) const;
  void forget();
  void begin();
  void cut(std::uint64_t size);

  std::string path_;
  const SweepHeader& header_;
  SweepForm form_;
  int file_ = -1;
  std::vector<SweepPoint> answered_;
  std::string waiting_;  ///< Not yet written.
};

/// Where answers are kept while they are found, and which part of them is asked for.
struct SweepOutput {
  std::string path = {};  ///< The file of the whole sweep; empty: answers are only returned.
  SweepForm form = SweepForm::jsonl;
  Shard shard = {};
  bool fresh = false;  ///< Answers that the file has are deleted.
};

/// `begin`: how many answers the file had, and how many are left. The others as Sweep::Sink.
struct SweepEvents {
  std::function<void(std::uint64_t known, std::uint64_t left)> begin = [](auto, auto) {};
  std::function<void(const SweepPoint& point)> take = [](const SweepPoint&) {};
  std::function<void()> flush = [] {};
};

/// Goes on with the file where it ends, until all is answered or until `stop`. Returns all answers,
/// those that were in the file included. Throws Error.
SweepReport answer_into(const SweepOutput& output, const Sweep& sweep, const SweepEvents& events,
                        const std::atomic<bool>& stop);

/// For a file of rows, the file next to it with the first line.
std::string header_file_of(const std::string& path);

/// jsonl or csv, by name (empty: not given) or the ending of the path. Throws Error.
SweepForm sweep_form(const std::string& name, const std::string& path);

/// Merges files of shards, as one process would have written them. Throws Error naming parts that
/// are missing, double or of another sweep.
void merge_shards(const std::vector<std::string>& files, const std::string& output, SweepForm form);

}  // namespace foretrace
