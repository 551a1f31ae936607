#pragma once

// The sentences and figures that several reports show, so that text, Markdown and CSV cannot
// disagree.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wording.h"
#include "foretrace/answer/prediction.h"

namespace foretrace {

/// Returns (after - before) / before as "-12.3 %"; "-" if `before` is 0.
std::string change_text(Nanoseconds before, Nanoseconds after);
std::string change_text(Bytes before, Bytes after);

/// Returns what a time refers to.
constexpr const char* per_step_text(bool has_steps) {
  return has_steps ? " a step" : " for the whole recording";
}

struct StepPart {
  std::string_view name;
  Nanoseconds baseline{0};
  Nanoseconds predicted{0};
};

/// Returns the parts of a step in the order of Breakdown.
std::array<StepPart, 7> step_parts(const Breakdown& before, const Breakdown& after);
std::array<StepPart, 7> step_parts(const Prediction& prediction);

/// The first lines of every report for people. `fits` is empty if the question has no memory limit;
/// `trust` is empty unless the grade is poor, `unprofiled` unless the profiler itself makes a step
/// noticeably longer.
struct VerdictLines {
  std::string trust, what, how_much, steps, unprofiled, how_sure, fits;
};
VerdictLines verdict(const Prediction& prediction);

/// A piece of evidence for the prediction: a heading and a sentence.
struct EvidenceLine {
  std::string_view heading;
  std::string sentence;
};
std::vector<EvidenceLine> evidence_lines(const Prediction& prediction);

/// Returns the effect of each step of the scenario: "amp: 12 kernels ...".
std::vector<std::string> changes(const Prediction& prediction);

/// Returns the figures of each step: "loader: miss share 0.862, disk bytes 225 GB".
std::vector<std::string> figures(const Prediction& prediction);

/// Returns note_text() of every note.
std::vector<std::string> note_texts(const Notes& notes);

/// Returns "**Trust is poor: ...**" and an empty line for a trust_warning(); empty if the warning
/// is empty. `subject` is a text such as " in what was measured".
std::string markdown_trust(const std::string& warning, std::string_view subject = "");

/// Returns the end of a verdict that points to warnings in the notes; empty if there are none.
std::string warnings_hint(const Notes& notes);

bool is_what_if(const Prediction& prediction);

/// Whether memory has a column "predicted": for a what-if, or a question about a limit or the
/// allocator.
bool asks_memory(const Prediction& prediction);

/// If the replay error is greater, the report says that what-ifs on this baseline cannot be
/// trusted.
constexpr double kTrustedReplayError = 0.01;

}  // namespace foretrace
