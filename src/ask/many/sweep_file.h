#pragma once

// The file of answers of a sweep, which grows while it runs.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ask/many/answer_file.h"
#include "ask/many/shard.h"
#include "foretrace/ask/sweep.h"

namespace foretrace {

class SweepFile {
 public:
  /// Opens or makes the file, and reads its answers. `fresh`: deletes them. Throws Error if it
  /// belongs to another sweep, or if another process writes it.
  SweepFile(const std::string& path, const SweepHeader& header, SweepForm form, bool fresh);

  /// Answers that were already there.
  std::vector<SweepPoint>& answered() { return answered_; }

  void add(const SweepPoint& point);
  void flush() { file_.flush(); }

 private:
  AnswerFileForm answers_of();

  const SweepHeader& header_;
  SweepForm form_;
  std::vector<SweepPoint> answered_;
  AnswerFile file_;
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

/// jsonl or csv, by name (empty: not given) or the ending of the path. Throws Error.
SweepForm sweep_form(const std::string& name, const std::string& path);

/// Merges files of shards, as one process would have written them. Throws Error naming parts that
/// are missing, double or of another sweep.
void merge_shards(const std::vector<std::string>& files, const std::string& output, SweepForm form);

}  // namespace foretrace
