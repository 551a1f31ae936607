#pragma once

// Answers the questions of a sweep: each alone, as predict() does, or together if they share a
// structure. Safe to call from several threads.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/question/predict.h"
#include "job/apply.h"
#include "question/sweep/questions.h"
#include "question/sweep/structure.h"

namespace foretrace {

/// State shared by questions with one structure.
struct SharedStructure {
  std::once_flag built;
  const SharedShape* shape = nullptr;
  const SweptJob* job = nullptr;
  nlohmann::json scenario;  ///< Scenario of one of the questions.
  Scenario parsed;          ///< `scenario`, parsed.
  /// nullptr if questions must be answered alone.
  std::unique_ptr<const SweepStructure> structure;
};

/// A question that is being answered.
struct PendingQuestion {
  std::uint64_t number = 0;
  std::vector<SweepValue> values = {};  ///< If empty, the plan has the values for this question.
  /// Questions with the same text share a structure; empty if it shares none.
  std::string structure = {};
  std::optional<SweepPoint> answer = {};
  /// Whether every assertion holds at the most likely value, however far it is trusted.
  bool holds = true;
  Trust trust = {};  ///< If changes are weighed, the facts behind the grade.
};

/// Questions that one thread answers together.
struct SweepTask {
  std::vector<std::size_t> indices;  ///< Indices of the questions in the block.
  std::shared_ptr<SharedStructure> structure;
};

class SweepAnswers {
 public:
  explicit SweepAnswers(const SweepQuestions& questions)
      : questions_(questions), donors_(questions.options.reading) {}

  /// Fills in the values of a question, and the text that identifies its structure.
  void prepare(PendingQuestion& pending) const;
  void answer(const SweepTask& task, std::vector<PendingQuestion>& block,
              SweepScratch& scratch) const;
  std::uint64_t answered_together() const { return together_count_; }

 private:
  SweepPoint point_without_answer(const PendingQuestion& pending) const;
  void refuse(const Error& error, PendingQuestion& pending) const;
  /// Answers a question by itself, as predict() would. An Error becomes its answer.
  void answer_alone(PendingQuestion& pending) const;
  /// Fills in the answer from a prediction, compared with the job as recorded. The trust is that of
  /// the recording, unless changes are weighed.
  void answer_from(const Scenario& scenario, const SweptJob& job, Prediction prediction,
                   PendingQuestion& pending) const;
  std::vector<std::string> verdicts(const Scenario& scenario, const Prediction& prediction) const;
  void build_structure(SharedStructure& shared, const PendingQuestion& pending) const;
  /// Adds the retiming transforms of a question. Returns false if one of them does not only retime
  /// after all.
  bool add_tail(const SharedStructure& shared, const PendingQuestion& pending,
                std::vector<std::unique_ptr<Transform>>& made, RetimingQuestion& question) const;
  /// Answers at most SweepScratch::kSets questions in one replay.
  void answer_together(const SharedStructure& shared, std::span<PendingQuestion* const> questions,
                       SweepScratch& scratch) const;
  void take_shared_answer(const SharedStructure& shared, const SweepStructure::ReplayedRank& answer,
                          PendingQuestion& pending) const;

  const SweepQuestions& questions_;
  mutable Donors donors_;
  mutable std::atomic<std::uint64_t> together_count_ = 0;
};

}  // namespace foretrace
