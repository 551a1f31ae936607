#pragma once

// The answer of `foretrace check`: whether a job is worse than its committed baseline, by which
// figures, and why. A figure is judged by an interval of its change, as steps vary:
//
//     change   --|-----limit-----|-->
//      [==]                           passed      not beyond the limit
//           [=======|=====]           undecided   may be on either side
//                      [==]           failed      certainly beyond it
//
// The same answer serves people, GitHub and GitLab, and programs that plot it over time.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

/// In the order of severity.
enum class CheckOutcome : std::uint8_t { left_out, passed, warned, undecided, failed };
std::string_view to_string(CheckOutcome standing);

/// The unit of a figure. Shares are in parts per million.
enum class FigureUnit : std::uint8_t { time, bytes, count, share };

struct CheckedFigure {
  std::string name;  ///< "step_time"
  std::string says;  ///< Its meaning in words.
  FigureUnit unit = FigureUnit::count;
  bool less_is_worse = false;
  std::optional<std::int64_t> before, after;
  std::int64_t lower = 0, upper = 0;  ///< Interval of the change, after - before.
  std::string limit, warn_limit;      ///< "5%", as written; empty: none.
  CheckOutcome standing = CheckOutcome::passed;
  std::string why;  ///< Why it is left out or undecided.
};

/// A place in the program that made figures worse, and the change there.
struct CheckCause {
  std::string what;   ///< "12 new cudaStreamSynchronize"
  std::string where;  ///< "train.py:88 in main, aten::item"; empty if unknown.
  std::string file;   ///< Relative to the root of the sources, if found there; may be empty.
  int line = 0;
  std::string kind;      ///< "sync", "kernel", "copy" ...
  Nanoseconds local{0};  ///< Added work per step at this place alone.
  /// Effect on the step time, from a replay without it; none if the step is not longer beyond
  /// noise.
  std::optional<Nanoseconds> effect;
  Bytes bytes{};  ///< Bytes at the peak or, for memory that is never freed, per step.
  std::int64_t count_before = 0, count_after = 0;
  std::string figure;  ///< The figure that it affects most: "syncs".
};

/// How small a change of the step time a check can tell from noise.
struct VisibleChange {
  static constexpr double kWanted = 0.01;
  /// A step that gets longer by more than this share of it is certainly longer, given how steps
  /// vary and how far the recordings of the baseline differ.
  double share = 0;
  std::size_t recordings = 1;  ///< Of the baseline. One does not show how far others would differ.
  /// Recordings of the baseline that would show kWanted, if they differ as the known ones do.
  std::optional<std::size_t> for_wanted;
};

struct CheckReport {
  std::vector<InputFile> inputs;
  std::string baseline;  ///< Path.
  std::string scenario;  ///< "as recorded", or the transforms of the what-if.
  bool structure_only = false;
  bool same_structure = false;  ///< The same work in the same places, times aside.
  StepTimes steps;              ///< Steps of the rank that is judged; empty for memory alone.
  std::vector<CheckedFigure> figures;
  std::optional<VisibleChange> visible;  ///< Empty if times are not compared.
  std::vector<CheckCause> causes;        ///< Greatest first.
  /// The change of the step time beyond noise that no cause accounts for; negative if causes were
  /// made up for elsewhere.
  std::optional<Nanoseconds> left;
  Trust trust;
  Notes notes;

  /// The worst of all figures; left_out if none was compared.
  CheckOutcome standing() const;
  /// The number of figures with this standing.
  std::int64_t count(CheckOutcome standing) const;
};

/// "188 ms", "11.3 GB", "12", "83.2 %".
std::string figure_text(FigureUnit unit, std::int64_t value);
/// "+25.3 %"; the difference for counts ("+3"), for shares ("+1.2 points"), or if the value before
/// was 0; "-" if a value is missing.
std::string figure_change(const CheckedFigure& figure);
/// One sentence: "step_time 150 ms -> 188 ms (+25.3 %), limit 5%".
std::string figure_sentence(const CheckedFigure& figure);
/// "+38 ms  12 new cudaStreamSynchronize from train.py:88".
std::string cause_sentence(const CheckCause& cause);
/// "steps 2.1 % longer or more, by 3 recordings; 9 would show 1.0 %".
std::string visible_words(const VisibleChange& visible);
/// "+2 ms: left, which no cause accounts for"; empty if nothing is left.
std::string left_sentence(const CheckReport& report);
/// The verdict in one line, which starts with a one-word summary.
std::string check_headline(const CheckReport& report);

class Document;
/// For people, in every form.
Document document_of(const CheckReport& report);
/// The object with schema "foretrace.check/1".
nlohmann::json to_json(const CheckReport& report);

/// One per form of a check for build servers: junit, github, bencher, benchmark.
struct CheckForm {
  std::string_view name, summary;
  void (*write)(const CheckReport& report, std::ostream& out);
};
const std::vector<CheckForm>& check_forms();
/// Writes one test per figure. The body of a failure has the numbers, because some viewers show
/// only that.
void write_check_junit(const CheckReport& report, std::ostream& out);
/// Writes workflow commands: at most ten annotations of a kind, because GitHub shows no more per
/// step.
void write_check_github(const CheckReport& report, std::ostream& out);
/// Writes Bencher Metric Format (bencher.dev).
void write_check_bencher(const CheckReport& report, std::ostream& out);
/// Writes customSmallerIsBetter of github-action-benchmark.
void write_check_benchmark(const CheckReport& report, std::ostream& out);

}  // namespace foretrace
