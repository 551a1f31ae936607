#pragma once

// Answers the questions that a chooser asks, in rounds: all points of a sweep in order, or points
// along an axis to find where an assertion begins or ceases to hold.
//
//     chooser --questions--> run --answers--> take --.
//        ^                                           |
//        `--------- what was answered so far --------'

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "question/sweep/answers.h"

namespace foretrace {

/// Returns the next questions, at most `most`; none when all are answered. It is called when all
/// previous answers were taken.
using Chooser = std::function<std::vector<PendingQuestion>(std::size_t most)>;

/// The questions from `first` up to but not including `end`.
Chooser in_order(std::uint64_t first, std::uint64_t end);

/// Called with answers in the order of their questions, by one thread at a time; `flush` follows
/// within about half a second of the first answer that was not flushed.
struct AnswerSink {
  std::function<void(PendingQuestion&&)> take;
  std::function<void()> flush = [] {};
};

/// Asks until the chooser has no more questions, or until `stop`.
void run_questions(const SweepQuestions& questions, const SweepAnswers& answers,
                   const Chooser& choose, const AnswerSink& sink, const std::atomic<bool>& stop);

}  // namespace foretrace
