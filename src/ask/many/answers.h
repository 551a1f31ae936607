#pragma once

// Answers questions of a sweep: each alone, as predict() does, or together where they share a
// structure. May be called from several threads.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ask/job/apply.h"
#include "ask/many/questions.h"
#include "ask/many/structure.h"
#include "foretrace/ask/predict.h"
#include "foretrace/error.h"

namespace foretrace {

/// State shared by questions with one structure.
struct SharedStructure {
  std::once_flag made;
  const SharedShape* shape = nullptr;
  const SweptJob* job = nullptr;
  nlohmann::json scenario;                          ///< Scenario of one of the questions.
  Scenario parsed;                                  ///< The same.
  std::unique_ptr<const SweepStructure> structure;  ///< None where it is of no use.
};

/// A question that is being answered.
struct Asked {
  std::uint64_t number = 0;
  std::vector<SweepValue> values = {};  ///< Without any they are those that the plan has for it.
  std::string structure = {};           ///< Same text, same structure; empty: has one for itself.
  std::optional<SweepPoint> answer = {};
  bool holds = true;  ///< Every assertion at the most likely value, however far it is trusted.
  Trust trust = {};   ///< Where changes are weighed: the facts behind the grade.
};

/// Questions that one thread answers in one go.
struct SweepTask {
  std::vector<std::size_t> places;  ///< In the block.
  std::shared_ptr<SharedStructure> structure;
};

class SweepAnswers {
 public:
  explicit SweepAnswers(const SweepQuestions& questions)
      : questions_(questions), donors_(questions.options.reading) {}

  /// The values of a question, and with whom it shares its structure.
  void prepare(Asked& asked) const;
  void answer(const SweepTask& task, std::vector<Asked>& block, SweepScratch& scratch) const;
  std::uint64_t answered_together() const { return together_count_; }

 private:
  SweepPoint blank(const Asked& asked) const;
  void refuse(const Error& error, Asked& asked) const;
  /// By itself, as predict() would answer it. Never throws Error.
  void answer_alone(Asked& asked) const;
  /// Compared with the job as recorded, whose facts grade it unless its own replay did.
  void answer_by(const Scenario& scenario, const SweptJob& job, Prediction prediction,
                 Asked& asked) const;
  std::vector<std::string> verdicts(const Scenario& scenario, const Prediction& prediction) const;
  void make(SharedStructure& shared, const Asked& asked) const;
  /// The retiming transforms of a question; false if one of them does not only retime after all.
  bool add_tail(const SharedStructure& shared, const Asked& asked,
                std::vector<std::unique_ptr<Transform>>& made, SweepQuestion& question) const;
  /// At most SweepScratch::kSets questions.
  void together(const SharedStructure& shared, std::span<Asked* const> questions,
                SweepScratch& scratch) const;
  void take(const SharedStructure& shared, const SweepStructure::Answer& answer,
            Asked& asked) const;

  const SweepQuestions& questions_;
  mutable Donors donors_;
  mutable std::atomic<std::uint64_t> together_count_ = 0;
};

}  // namespace foretrace
