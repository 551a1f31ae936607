#pragma once

// Answers many questions about one trace, each as predict() would, but much faster: the cost
// depends on the number of structures, not of questions. Where settings only change durations,
// eight questions are answered in one pass over a graph that is edited and compiled once.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/answer/sweep.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"

namespace foretrace {

struct SweepOptions {
  std::string trace = {};  ///< Replaces the trace of the scenario.
  bool intervals = false;  ///< Also computes how far each answer may be off, which takes time.
  bool memory = true;      ///< Also computes peaks of memory.
  unsigned jobs = 0;       ///< Threads; 0: one for each core.
  ImportOptions reading = {};
  bool share_structures = true;  ///< If false, each question is answered alone: the same, slower.
  std::string ledger_path = {};  ///< The user's own ledger of errors; empty: none.
  /// Grades each answer by its own replay, as predict() does. Otherwise answers are graded by the
  /// recording and the kinds of what-if alone, because replays without unexplained time cost more
  /// than the answers.
  bool grades_each_answer = false;
};

class Job;

class Sweep {
 public:
  /// Reads scenario and traces. Throws Error with the place.
  explicit Sweep(const std::string& scenario_path, const SweepOptions& options = {});
  /// The same for a scenario that is not in a file.
  explicit Sweep(const nlohmann::json& scenario, const SweepOptions& options = {});
  /// Asks about a job that was opened already.
  Sweep(const nlohmann::json& scenario, Job job, const SweepOptions& options = {});
  Sweep(Sweep&&) noexcept;
  ~Sweep();

  const SweepHeader& header() const;

  /// Called with answers in their order, by one thread at a time; `flush` follows within about half
  /// a second of the first answer that was not flushed.
  struct Sink {
    std::function<void(SweepPoint&&)> take;
    std::function<void()> flush;
  };
  /// Answers the questions from `first` up to but not including `end`, or until `stop`.
  void run(std::uint64_t first, std::uint64_t end, const Sink& sink,
           const std::atomic<bool>& stop) const;
  /// How many of the answers so far came from structures shared with others.
  std::uint64_t answered_together() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
