#pragma once

// The file with the answers of a sweep, which grows while the sweep runs.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foretrace/question/sweep.h"
#include "question/sweep/answer_file.h"
#include "question/sweep/shard.h"

namespace foretrace {

class SweepFile {
 public:
  /// Opens or creates the file, and reads its answers; `fresh` deletes them. Throws Error if it
  /// belongs to another sweep, or if another process is writing it.
  SweepFile(const std::string& path, const SweepHeader& header, SweepForm form, bool fresh);

  /// Answers that the file already had.
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

/// The file that keeps answers while they are computed, and the part of the sweep to answer.
struct SweepOutput {
  std::string path = {};  ///< The file of the whole sweep; if empty, answers are only returned.
  SweepForm form = SweepForm::jsonl;
  Shard shard = {};
  bool fresh = false;  ///< Deletes the answers that the file already has.
};

/// `begin` gets the number of answers in the file, and the number left. The others are as in
/// Sweep::Sink.
struct SweepEvents {
  std::function<void(std::uint64_t known, std::uint64_t left)> begin = [](auto, auto) {};
  std::function<void(const SweepPoint& point)> take = [](const SweepPoint&) {};
  std::function<void()> flush = [] {};
};

/// Continues the file where it ends, until everything is answered or until `stop`. Returns all
/// answers, including those that the file had. Throws Error.
SweepReport answer_into(const SweepOutput& output, const Sweep& sweep, const SweepEvents& events,
                        const std::atomic<bool>& stop);

/// jsonl or csv, by name (empty if not given) or by the ending of the path. Throws Error.
SweepForm sweep_form(const std::string& name, const std::string& path);

/// Merges files of shards into the file that one process would have written. Throws Error if parts
/// are missing, occur twice, or belong to another sweep.
void merge_shards(const std::vector<std::string>& files, const std::string& output, SweepForm form);

}  // namespace foretrace
