#pragma once

// A gate for continuous integration: the work of a job is reduced to a small baseline that is
// committed with the program, and the trace of a changed program is compared with it.
//
//     trace --summarize--> summary + figures --write_baseline--> baseline.json   (--bless)
//     trace --summarize--> summary + figures --check(baseline)--> report
//
// A baseline names nothing of the machine: no paths, ids, streams or hosts. Work is identified by
// kind, op, module, source line and name, so that causes can be named without the old trace. It may
// represent several recordings of the unchanged job: then the differences between them are noise.

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/answer/check.h"
#include "foretrace/graph.h"
#include "foretrace/question/predict.h"

namespace foretrace {

/// The way in which traces become graphs and figures. Baselines of another model are refused.
constexpr int kCheckModel = 1;

/// The levels of detail at which work is distinguished go from 0 to this.
constexpr int kCoarsestDetail = 4;
/// Work is distinguished by kind and name alone, regardless of place.
constexpr int kAnyPlace = kCoarsestDetail + 1;

/// Work that the program does at one place, each step.
struct JobGroup {
  TaskKind kind = TaskKind::host;
  std::string op = {}, module = {}, file = {}, function = {}, name = {};
  std::vector<std::pair<int, std::int64_t>> lines = {};  ///< Lines of `file` with counts, sorted.
  std::int64_t count = 0;
  Nanoseconds work{0};
  Nanoseconds least{0};    ///< `work` of the step with least; baselines do not store it.
  Nanoseconds most{0};     ///< `work` of the step with most.
  Nanoseconds longest{0};  ///< The longest single call or kernel of a step, as a median over steps.
  Nanoseconds hidden{0};   ///< Time of a copy or collective during which kernels run.
  Nanoseconds critical{0};  ///< On the critical path.
  Bytes bytes{};
  std::int64_t aside = 0;     ///< Tasks that are on another stream than most kernels.
  std::int64_t pageable = 0;  ///< Copies from or to memory that is not pinned.
};

/// Blocks that one place requests from the allocator.
struct MemoryGroup {
  std::string op, module, file, function;
  int line = 0;
  Bytes peak{};  ///< Held when the fullest device is fullest.
  Bytes kept{};  ///< Made in a step and not freed in the next.
};

/// Kernels with the same name (template arguments included), grid, block and input shapes of their
/// op.
struct KernelTimes {
  std::string name;               ///< Shortened for reading.
  std::string key;                ///< 16 hex digits of everything that distinguishes them.
  std::int64_t count = 0;         ///< In a step.
  Nanoseconds each{0};            ///< Mean duration in a step, as a median over the steps.
  Nanoseconds least{0}, most{0};  ///< Mean duration in the fastest and in the slowest step.
  /// `each` in ns of every recording, if the baseline represents several.
  std::vector<std::int64_t> runs = {};
  /// Mean duration in ns by step; 0 for a step without them. Baselines do not store it.
  std::vector<std::int64_t> of_steps = {};
};

/// The values of each figure by step.
using FigureSteps = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

struct JobSummary {
  int detail = 0;  ///< 0: all that identifies a group; higher: less, where groups would be many.
  std::int32_t rank = 0;
  std::string device;                ///< "nvidia a100-sxm4-40gb"; empty if the trace does not say.
  std::vector<JobGroup> groups;      ///< Sorted by their identity.
  std::vector<MemoryGroup> memory;   ///< Sorted.
  std::vector<KernelTimes> kernels;  ///< All but the smallest, sorted by name and key.
  FigureSteps figures;
  /// The figures of every recording that the baseline represents, including the one that the rest
  /// of the summary describes. Empty if there is only that one.
  std::vector<FigureSteps> runs;
};

/// 16 hex digits of everything in the groups except times and lines.
std::string structure_fingerprint(const JobSummary& summary);

/// How the values of all steps are summarized into one.
enum class FigureValue : std::uint8_t { median, mean, greatest };

/// Limits of a new baseline.
struct DefaultLimits {
  std::string_view fail = {}, warn = {};  ///< Empty: none.
  bool has_floor = false;                 ///< Whether a hundredth of a step is tolerated as well.
};

/// A figure that can be checked.
struct FigureEntry {
  std::string_view name, says;
  FigureUnit unit = FigureUnit::count;
  FigureValue value = FigureValue::median;
  bool less_is_worse = false;
  bool varies_with_times = false;  ///< A count or a share that depends on times.
  DefaultLimits limits = {};

  /// Timed figures are left out if only the structure is compared.
  bool is_timed() const { return unit == FigureUnit::time || varies_with_times; }
};
const std::vector<FigureEntry>& figure_entries();
/// Throws Error with the nearest name.
const FigureEntry& figure_entry(std::string_view name);

/// How much worse a figure may become: by a share of its old value, plus an amount.
struct Limit {
  std::string text;  ///< "5%", "200MB", "+10", "5%+2ms"
  double relative = 0;
  std::int64_t absolute = 0;
  bool is_off = false;  ///< "off": any change is accepted.
};
/// For a share, "5%" means five percentage points. Throws Error.
Limit parse_limit(std::string_view text, const FigureEntry& figure);
/// Reads "step_time:5%". Throws Error.
std::pair<std::string, Limit> parse_named_limit(std::string_view text);

struct CheckBaseline {
  std::string scenario = {};  ///< Effective settings, as JSON text; without the trace.
  std::string fingerprint = {};
  std::string tool = {};
  std::map<std::string, Limit> fail = {}, warn = {};
  /// Figures of an older file that this version computes in another way; they are not compared.
  std::vector<std::string> outdated = {};
  JobSummary summary = {};
};
/// Reads files of all versions. Throws Error if the file is not a baseline, or if it was made with
/// another kCheckModel.
CheckBaseline read_baseline(const std::string& path);
CheckBaseline parse_baseline_text(std::string_view text);
/// Indented and in a stable order, so that its differences are easy to read.
std::string write_baseline(const CheckBaseline& baseline);

struct CheckOptions {
  std::map<std::string, Limit> fail, warn;  ///< These replace the limits of the baseline.
  bool structure_only = false;
  std::optional<CheckOutcome> undecided;  ///< Outcome to use instead of undecided.
  bool adds_runs = false;                 ///< bless() keeps the recordings of the old baseline.
  std::string source_root;                ///< Folder that the paths in annotations are relative to.
  ImportOptions reading = {};
};

/// Finds a folder for CheckOptions::source_root: where build servers say the sources are, else the
/// repository around the working directory; empty if there is none.
std::string source_root_here();

/// Makes a baseline with the limits of `old`, if given, else the usual ones.
CheckBaseline bless(const std::string& trace_path, const Scenario& scenario,
                    const CheckOptions& options, const CheckBaseline* old = nullptr);
/// Makes a baseline from several recordings of the unchanged job, at most kMaxRuns. It describes
/// the one with the median step time; a change must be beyond the limit against each of them, and
/// beyond the differences between them. With CheckOptions::adds_runs the recordings of `old` are
/// kept as well, the newest first if there are too many. Throws Error if they are not of one job.
CheckBaseline bless(const std::vector<std::string>& trace_paths, const Scenario& scenario,
                    const CheckOptions& options, const CheckBaseline* old = nullptr);
constexpr std::size_t kMaxRuns = 16;
/// Throws Error if baseline and question do not belong together: another scenario, another job.
CheckReport check(const std::string& trace_path, const Scenario& scenario,
                  const CheckBaseline& baseline, const CheckOptions& options);

/// A change of figure_value(), and its 95 % interval.
struct StepChange {
  std::int64_t change = 0, lower = 0, upper = 0;
  bool is_assumed = false;  ///< Too few steps to know how much they vary.
};
/// Counts are exact even with too few steps to estimate variation. The interval of a greatest step
/// is as wide on each side as the distance between the greatest step of the baseline and its
/// median.
StepChange step_change(const FigureEntry& figure, std::vector<std::int64_t> before,
                       std::vector<std::int64_t> after);

/// Summarizes the values of all steps.
std::int64_t figure_value(const FigureEntry& figure, std::vector<std::int64_t> values);

/// Returns passed, undecided or failed.
CheckOutcome judge(const StepChange& change, bool less_is_worse, std::int64_t before,
                   const Limit& limit);

}  // namespace foretrace
