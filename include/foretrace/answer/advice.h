#pragma once

// The answer of `foretrace advise`: what bounds a step, the gain of each change, alone and
// together, and the limit of all of them.
//
//     now        |cpuLcpuLcpuLcpuL|        bound by the host: the path through the step, from wait
//                |   aaa bb  c   d|        to wait, consists of its work
//     no launch  |cpucpucpucpu|            a ceiling of the ladder: an upper bound on the gain
//     all        |aaabbcd|                 the limit while the kernels stay as they are
//
// Every time is that of a replay of an edited graph. Ceilings are upper bounds, suggestions are
// predictions with an interval.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// delays: between the end of one task and the start of one that waits for it; launches: calls that
/// launch device work, and the delay until it starts there.
enum class PathPart : std::uint8_t {
  kernels,
  communication,
  copies,
  input,
  host,
  launches,
  delays
};
constexpr std::size_t kPathParts = 7;
/// "kernels", "host work" ...
std::string_view to_string(PathPart part);

/// The composition of the critical path through the steady steps.
struct PathShares {
  std::array<Nanoseconds, kPathParts> parts{};
  double host_waits = 0;  ///< How often a step's path leads from the device back to the host.

  Nanoseconds total() const;
  double share(PathPart part) const;
  PathPart largest() const;
};

/// The kind of work without which a step would be shortest: it bounds the step.
struct StepBound {
  PathPart part = PathPart::kernels;
  Nanoseconds without{0};             ///< Step time if the work took no time; 0: not known.
  PathPart next = PathPart::kernels;  ///< The bound of such a step.
};

/// A replay with one cause of waiting removed as far as possible.
struct AdviceCeiling {
  std::string name;        ///< "launches"
  std::string title;       ///< "launching took no time"
  std::string assumes;     ///< A sentence.
  bool is_present = true;  ///< Whether the recording has this cause.
  Nanoseconds step_time{0};
  PathPart bound = PathPart::kernels;  ///< The bound of a step without the cause.
};

/// The work in a step that a change removes from one lane: its gain if nothing waited for anything.
struct LaneGain {
  std::string lane;
  Nanoseconds before{0}, after{0};
};

struct Confidence {
  std::string word;    ///< "high", "medium", "low"
  std::string reason;  ///< "off by at most 13.0 % where it was compared"
};

struct Suggestion {
  std::string use;      ///< As for --with.
  std::string goal;     ///< "time", "throughput", "memory", "device"
  std::string summary;  ///< The edit in words.
  Nanoseconds step_time{0}, lower{0}, upper{0};
  double samples = 1;   ///< Samples in a step, for each recorded one.
  Nanoseconds gain{0};  ///< Time saved for as many samples as a recorded step has.
  std::optional<Bytes> allocated, reserved;  ///< Peaks of the fullest device.
  bool fits = true;
  LaneGain local;  ///< The lane that most work is removed from; `lane` is empty if there is none.
  Confidence confidence;
  Trust trust;
  Applicability applies;
  std::string doubt;  ///< Why the gain may well be smaller; empty if nothing points to that.
  PathShares path;
  bool recommended = false;
  bool is_rejected = false;  ///< Not used in combinations either, whatever it gains.
  std::string why_not;       ///< Reason, if it is not recommended.
  std::string instead_of;    ///< Use of a better suggestion for the same work; gains do not add up.
  std::vector<std::string> assumptions;
};

/// A transform that led to no suggestion or is never recommended, and the reason.
struct NotTried {
  std::string transform, reason;
};

/// Two suggestions applied together.
struct PairEffect {
  std::size_t first = 0, second = 0;  ///< Into JointAdvice::members.
  Nanoseconds gain{0};                ///< Gain of both together.
  Nanoseconds sum{0};                 ///< Sum of their own gains.
  Nanoseconds other_order{0};         ///< Gain with the second applied first.
  std::string why;
};

struct JointAdvice {
  std::vector<std::size_t> members;  ///< Into Advice::suggestions, in the order applied.
  std::vector<std::string> uses;     ///< Uses of the members; settings may differ (more workers).
  std::vector<Nanoseconds> alone;    ///< Gain of each member alone with these settings.
  Nanoseconds step_time{0}, lower{0}, upper{0};
  Nanoseconds gain{0}, sum{0};
  Nanoseconds other_order{0};           ///< Gain when they are applied last to first.
  std::vector<Nanoseconds> attributed;  ///< Shares of the gain, by Shapley (1953); add up to it.
  std::vector<PairEffect> pairs;
  PathShares path;
  std::vector<std::string> left_out;  ///< "cuda_graphs: torch_compile applies to launches, too"
};

/// A kind of work that is made faster, step by step.
struct SpeedUp {
  std::string name;        ///< "link.bandwidth"
  std::string title;       ///< "transfers of collectives"
  bool graded = true;      ///< If false, the work can only be removed as a whole.
  Nanoseconds work{0};     ///< Time of the work in a step.
  Nanoseconds at_best{0};  ///< Step time if the work took no time.
  /// Speed-up of the work that gains all but a hundredth of a step; 0: none in the range tried.
  double enough = 0;
  PathPart bound_by = PathPart::kernels;  ///< Bound of the step at best.
  /// Speed-up of the work that reaches the target; 0: only if it takes almost no time; empty: none
  /// does, or there is no target.
  std::optional<double> needed;
};

/// A job on one GPU, predicted on more GPUs with data_parallel.
struct MoreGpus {
  struct Point {
    std::int64_t gpus = 1;
    double times_as_fast = 1;
    double each_added = 1;  ///< Gain of each GPU beyond the previous point, relative to one alone.
  };
  std::string network;        ///< Network that was asked about; empty: none.
  std::vector<Point> points;  ///< In ascending order of GPUs, each with twice as many as before.
  std::string refused;        ///< Why there are no points.
};

/// Kernels that somebody could make faster or slower, and what a step gains.
struct KernelCandidate {
  std::string name;          ///< As asked: a part of their names or modules, or a pattern.
  double factor = 1;         ///< Their new time, relative to the recorded one.
  std::int64_t line = 0;     ///< Of the file that names it.
  Nanoseconds work{0};       ///< Their recorded time in a step.
  Nanoseconds step_time{0};  ///< With these kernels changed alone.
};

struct AdviceTarget {
  std::string text;  ///< "step_time <= 100ms"
  Nanoseconds step_time{0};
  bool holds_now = false;
};

struct Advice {
  std::vector<InputFile> inputs;
  bool has_steps = true;
  std::string machine;  ///< Device that the job was moved to first; empty: as recorded.
  Nanoseconds measured{0}, step_time{0};
  double replay_error = 0;
  double unexplained = 0;  ///< Share of the time without a known cause.
  double noise = 0;        ///< Share of a step; smaller gains are not recommended.
  double spread = 0;       ///< Share of a step by which the recorded ones differ from the median.
  Breakdown breakdown;
  StepRates rates;
  PathShares path;
  StepBound bound;  ///< Without ceilings, the largest part of the path.
  std::optional<Bytes> allocated, reserved;
  Bytes memory{};  ///< Memory of the device, if known.

  std::vector<AdviceCeiling> ladder;  ///< The last one removes all causes.
  /// Sorted by time saved, greatest first. Of those about as good as the best, the most certain
  /// leads, but loading data comes before compilers and CUDA graphs.
  std::vector<Suggestion> suggestions;
  std::vector<NotTried> not_applicable, no_advice;
  std::optional<JointAdvice> joint;
  std::vector<SpeedUp> speed_ups;
  std::vector<KernelCandidate> candidates;  ///< Those that were asked about, greatest gain first.
  std::optional<AdviceTarget> target;
  std::optional<Curve> curve;  ///< The setting that was asked about.
  std::size_t top = 5;         ///< Number of suggestions that are shown in full.
  /// Causes to look into before any change of the program's kernels or launches: a rank that the
  /// others wait for comes first, then driver calls that allocate, loading, and long pieces of host
  /// work, the greatest first.
  std::vector<std::string> causes;
  std::string rank_choice;  ///< Which of several ranks is advised and why; empty for one.
  MoreGpus more_gpus;
  Trust trust;
  Notes notes;

  /// Whether anything that was tried reaches the target; true without one.
  bool reaches_target() const;
};

class Document;
/// For people, in every form: everything, or one screen of 24 lines and 100 columns with the
/// answers, the best suggestions and ceilings.
Document document_of(const Advice& advice, bool is_whole);
/// The object with schema "foretrace.advice/1".
nlohmann::json to_json(const Advice& advice);
/// One row for each replay.
void write_csv(const Advice& advice, std::ostream& out);

}  // namespace foretrace
