#pragma once

// The gate of a continuous integration: what a job does is boiled down to a small baseline that is
// committed with the program, and the trace of a changed program is held against it.
//
//     trace --summarize--> summary + figures --write_baseline--> baseline.json   (--bless)
//     trace --summarize--> summary + figures --check(baseline)--> report
//
// A baseline names nothing of the machine: no paths, ids, streams or hosts. Work is told by kind,
// op, module, source line and name, so that causes can be named without the old trace.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/check_report.h"
#include "foretrace/scenario.h"

namespace foretrace {

/// Of how traces become graphs and figures. Baselines of another one are refused.
constexpr int kCheckModel = 1;

/// The levels of detail in which work is told apart go from 0 to this.
constexpr int kCoarsestDetail = 4;
/// Work is told apart by kind and name alone, wherever it is.
constexpr int kAnyPlace = kCoarsestDetail + 1;

/// Work that the program does at one place, each step.
struct JobGroup {
  std::string kind = {}, op = {}, module = {}, file = {}, function = {}, name = {};
  std::vector<std::pair<int, std::int64_t>> lines = {};  ///< Of `file`, with counts; sorted.
  std::int64_t count = 0;
  Nanoseconds work{0};
  Nanoseconds least{0};     ///< `work` of the step with least; baselines have none.
  Nanoseconds most{0};      ///< `work` of the step with most.
  Nanoseconds hidden{0};    ///< Of a copy or collective: while kernels run.
  Nanoseconds critical{0};  ///< On the critical path.
  Bytes bytes{};
  std::int64_t aside = 0;     ///< Those on another stream than that with most kernels.
  std::int64_t pageable = 0;  ///< Copies from or to memory that is not pinned.
};

/// Blocks that one place asks the allocator for.
struct MemoryGroup {
  std::string op, module, file, function;
  int line = 0;
  Bytes peak{};  ///< Held when the fullest device is fullest.
  Bytes kept{};  ///< Made in a step and not freed in the next.
};

struct JobSummary {
  int detail = 0;  ///< 0: all that identifies a group; higher: less, where groups would be many.
  std::int32_t rank = 0;
  std::string device;            ///< "nvidia a100-sxm4-40gb"; empty where the trace does not say.
  std::vector<JobGroup> groups;  ///< Sorted by what identifies them.
  std::vector<MemoryGroup> memory;                           ///< Sorted.
  std::map<std::string, std::vector<std::int64_t>> figures;  ///< By name: the value of each step.
};

/// Of what is in the groups but times and lines: 16 hex digits.
std::string structure_fingerprint(const JobSummary& summary);

/// What can be checked.
struct FigureEntry {
  std::string_view name, says;
  FigureUnit unit = FigureUnit::count;
  bool less_is_worse = false;
  bool is_timed = false;        ///< Left out where only the structure is compared.
  std::string_view fail, warn;  ///< Limits of a new baseline; empty: none.
  bool has_floor = false;       ///< A hundredth of a step more is no failure of a new baseline.
};
const std::vector<FigureEntry>& figure_entries();
/// Throws Error with the nearest name.
const FigureEntry& figure_entry(std::string_view name);

/// How much worse a figure may become: by a share of what it was, plus an amount.
struct Limit {
  std::string text;  ///< "5%", "200MB", "+10", "5%+2ms"
  double relative = 0;
  std::int64_t absolute = 0;
  bool is_off = false;  ///< "off": nothing is too much.
};
/// Of a share, "5%" are five points. Throws Error.
Limit parse_limit(std::string_view text, const FigureEntry& figure);
/// From "step_time:5%". Throws Error.
std::pair<std::string, Limit> parse_named_limit(std::string_view text);

struct CheckBaseline {
  std::string scenario = {};  ///< Effective settings, as JSON text; without the trace.
  std::string fingerprint = {};
  std::string tool = {};
  std::map<std::string, Limit> fail = {}, warn = {};
  JobSummary summary = {};
};
/// Throws Error if it is none, or of another model.
CheckBaseline read_baseline(const std::string& path);
CheckBaseline parse_baseline_text(std::string_view text);
/// Pretty and in a stable order, so that its difference reads well.
std::string write_baseline(const CheckBaseline& baseline);

struct CheckOptions {
  std::map<std::string, Limit> fail, warn;  ///< In place of those of the baseline.
  bool structure_only = false;
  std::optional<Standing> undecided;  ///< What undecided figures are taken for.
  std::string source_root;            ///< Folder that files of annotations are relative to.
  ImportOptions reading = {};
};

/// What becomes the baseline: limits of `old`, where there is one, else the usual ones.
CheckBaseline bless(const std::string& trace_path, const Scenario& scenario,
                    const CheckOptions& options, const CheckBaseline* old = nullptr);
/// Throws Error where baseline and question do not belong together.
CheckReport check(const std::string& trace_path, const Scenario& scenario,
                  const CheckBaseline& baseline, const CheckOptions& options);

/// A change of medians, and the interval in which it lies nineteen times out of twenty.
struct StepChange {
  std::int64_t change = 0, lower = 0, upper = 0;
  bool is_assumed = false;  ///< Too few steps to know how much they vary.
};
/// Of what is not timed, too few steps to tell take nothing from its exactness.
StepChange step_change(const FigureEntry& figure, std::vector<std::int64_t> before,
                       std::vector<std::int64_t> after);

/// The one value that stands for those of all steps.
std::int64_t figure_value(const FigureEntry& figure, std::vector<std::int64_t> values);

/// passed, undecided or failed.
Standing judge(const StepChange& change, bool less_is_worse, std::int64_t before,
               const Limit& limit);

}  // namespace foretrace
