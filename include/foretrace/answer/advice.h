#pragma once

// The answer of `foretrace advise`: what bounds a step, the gain of each change, alone and
// together, and the limit of all of them.
//
//     now        |cpuLcpuLcpuLcpuL|        bound by the host: the path through the step, from wait
//                |   aaa bb  c   d|        to wait, consists of its work
//     no launch  |cpucpucpucpu|            a rung of the ladder: an upper bound on the gain
//     all        |aaabbcd|                 the limit while the kernels stay as they are
//
// Every time is that of a replay of an edited graph. Rungs are upper bounds, suggestions are
// predictions with an interval.

#include <array>
#include <cstdint>
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
  double host_waits = 0;  ///< Times a step that the path leads from the device back to the host.

  Nanoseconds total() const;
  double share(PathPart part) const;
  PathPart largest() const;
};

/// A replay with one cause of waiting removed as far as possible.
struct Rung {
  std::string name;     ///< "launches"
  std::string title;    ///< "launching took no time"
  std::string assumes;  ///< A sentence.
  bool there = true;    ///< Whether the recording has any of it.
  Nanoseconds step_time{0};
  PathPart bound = PathPart::kernels;  ///< Then.
};

/// Work that a change takes off one lane, in a step: its gain if nothing waited for anything.
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
  double samples = 1;   ///< In a step, for each one recorded.
  Nanoseconds gain{0};  ///< Gain in the time for as many samples as a recorded step has.
  std::optional<Bytes> allocated, reserved;  ///< Peaks of the fullest device.
  bool fits = true;
  LaneGain local;  ///< The lane on which most work goes away; `lane` is empty if there is none.
  Confidence confidence;
  Trust trust;
  std::string doubt;  ///< Why it may well be less; empty if nothing points to that.
  PathShares path;
  bool recommended = false;
  bool barred = false;     ///< Not recommended in combinations either, whatever it adds.
  std::string why_not;     ///< The reason, if it is not recommended.
  std::string instead_of;  ///< A better one that does the same work; not to be added up.
  std::vector<std::string> assumptions;
};

/// A transform that nothing was found for, or that is none to recommend; and why.
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
  std::vector<std::size_t> members;  ///< Into Advice::suggestions, as they are applied.
  std::vector<std::string> uses;     ///< Theirs; settings may be others than alone (more workers).
  std::vector<Nanoseconds> alone;    ///< The gain of each with these settings.
  Nanoseconds step_time{0}, lower{0}, upper{0};
  Nanoseconds gain{0}, sum{0};
  Nanoseconds other_order{0};           ///< Gain when they are applied last to first.
  std::vector<Nanoseconds> attributed;  ///< Shares of the gain, by Shapley (1953); add up to it.
  std::vector<PairEffect> pairs;
  PathShares path;
  std::vector<std::string> left_out;  ///< "cuda_graphs: torch_compile applies to launches, too"
};

/// Something made faster step by step.
struct SpeedUp {
  std::string name;        ///< "link.bandwidth"
  std::string title;       ///< "transfers of collectives"
  bool graded = true;      ///< Otherwise it is there or not.
  Nanoseconds work{0};     ///< In a step.
  Nanoseconds at_best{0};  ///< Step time without it.
  double enough = 0;  ///< So many times as fast brings all but a hundredth of a step; 0: no end.
  PathPart then = PathPart::kernels;  ///< The bound of the step at best.
  std::optional<double> needed;       ///< So many times as fast reaches the target.
};

/// A job on one GPU with as many workers as data_parallel adds to it.
struct MoreGpus {
  struct Point {
    std::int64_t gpus = 1;
    double times_as_fast = 1;
    double each_added = 1;  ///< What each GPU beyond the point before brings, of one alone.
  };
  std::string network;        ///< As it was asked about; empty: it was not.
  std::vector<Point> points;  ///< In ascending order of GPUs, twice as many from one to the next.
  std::string refused;        ///< Why there are none.
};

struct AdviceTarget {
  std::string text;  ///< "step_time <= 100ms"
  Nanoseconds step_time{0};
  bool holds_now = false;
};

struct Advice {
  std::vector<InputFile> inputs;
  bool has_steps = true;
  std::string machine;  ///< That the job was moved to first; empty: as recorded.
  Nanoseconds measured{0}, step_time{0};
  double replay_error = 0;
  double unexplained = 0;  ///< Share of the time.
  double noise = 0;        ///< Share of a step: smaller gains are not advised.
  double spread = 0;       ///< Share of a step by which the recorded ones differ from the median.
  Breakdown breakdown;
  StepRates rates;
  PathShares path;
  std::optional<Bytes> allocated, reserved;
  Bytes memory{};  ///< Memory of the device, if known.

  std::vector<Rung> ladder;             ///< The last one is all of them.
  std::vector<Suggestion> suggestions;  ///< Sorted by time saved, greatest first.
  std::vector<NotTried> not_applicable, no_advice;
  std::optional<JointAdvice> joint;
  std::vector<SpeedUp> speed_ups;
  std::optional<AdviceTarget> target;
  std::optional<Curve> curve;  ///< The setting that was asked about.
  std::size_t top = 5;         ///< This many suggestions are shown in full.
  /// Causes to look into before any change of the program's kernels or launches: a rank that the
  /// others wait for, driver calls that allocate, loading. The greatest comes first.
  std::vector<std::string> first;
  MoreGpus more_gpus;
  Trust trust;
  Notes notes;

  /// Whether anything that was tried reaches the target; true without one.
  bool reaches_target() const;
};

}  // namespace foretrace
