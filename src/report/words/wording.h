#pragma once

// The sentences and figures that more than one report shows, so that text, markdown and csv cannot
// disagree.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wording.h"
#include "foretrace/answer/prediction.h"

namespace foretrace {

/// (after - before) / before as "-12.3 %"; "-" where there is nothing to compare with.
std::string change_text(Nanoseconds before, Nanoseconds after);
std::string change_text(Bytes before, Bytes after);

struct Share {
  std::string_view name;
  Nanoseconds baseline{0};
  Nanoseconds predicted{0};
};

/// The parts of a step in the order of Breakdown.
std::array<Share, 6> shares(const Prediction& prediction);

/// The lines every report for people begins with; `fits` is empty where no limit was asked about.
/// `trust` is empty unless the answer is not to be relied on.
struct VerdictLines {
  std::string trust, what, how_much, how_sure, fits;
};
VerdictLines verdict(const Prediction& prediction);

/// The evidence for the prediction, as pairs of a heading and a sentence.
struct Ground {
  std::string_view heading;
  std::string sentence;
};
std::vector<Ground> grounds(const Prediction& prediction);

/// The effect of each step of the scenario: "amp: 12 kernels ...".
std::vector<std::string> changes(const Prediction& prediction);

/// The figures of each step: "loader: miss share 0.862, disk bytes 225 GB".
std::vector<std::string> figures(const Prediction& prediction);

/// note_text() of every note.
std::vector<std::string> note_texts(const Notes& notes);

/// "**Trust is poor: ...**" and an empty line, from trust_warning(); empty if that is. `in`: the
/// subject, such as " in what was measured".
std::string markdown_trust(const std::string& warning, std::string_view in = "");

/// The end of a verdict if a note is a warning; empty otherwise.
std::string mind_warnings(const Notes& notes);

bool is_what_if(const Prediction& prediction);

/// A what-if, or a question about a limit or the allocator: memory has a "predicted" column, too.
bool asks_memory(const Prediction& prediction);

/// A baseline with a greater replay error is marked: what-ifs on it cannot be trusted.
constexpr double kTrustedReplayError = 0.01;

}  // namespace foretrace
