#pragma once

// The answer of `foretrace diff`: what changed between two recordings of a job, and the effect of
// each change on the step time.
//
//     before          85.0 ms
//       input        -38.1 ms    data loading          (76.2 ms less of it)
//       host work     -0.4 ms    aten::conv2d
//       ...
//     after           48.9 ms    the effects add up, to the nanosecond
//
// `local` is the additional time of the changed work itself; `effect` is the change of the step
// time. Work that nothing waits for has a local difference and no effect.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/answer/serving_steps.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// replaced: another kernel does the work of the same op. waits: dependencies and delays that are
/// not work. rest: the part of the change that belongs to no group of tasks.
enum class DiffKind : std::uint8_t {
  kernels,
  replaced,
  collectives,
  copies,
  launches,
  syncs,
  host,
  input,
  waits,
  rest
};
std::string_view to_string(DiffKind kind);

/// Tasks and bytes are counted in the steps that are compared; times are those of one step.
struct DiffCause {
  DiffKind kind = DiffKind::rest;
  std::string label;  ///< An op, a call or a wait: "aten::addmm", "cudaStreamSynchronize".
  std::string place;  ///< The line of the user's own code, or the ops around; may be empty.
  std::int64_t added = 0, removed = 0;
  std::int64_t moved = 0;    ///< Tasks at another place of the step, in neither number above.
  std::int64_t changed = 0;  ///< Tasks on both sides with another duration.
  Bytes bytes{};             ///< Additional bytes that are moved; negative: fewer.
  Nanoseconds local{0}, effect{0};
  std::string name_before{}, name_after{};  ///< The first pair of replaced kernels.
};

/// The work in the steps that are compared.
struct StepContent {
  std::int64_t kernels = 0, collectives = 0, copies = 0, fills = 0;
  std::int64_t launches = 0, syncs = 0, host_tasks = 0, allocations = 0;
  Bytes copied{}, communicated{}, allocated{};
};

/// One part of the critical path of a step.
struct PathShare {
  std::string name;  ///< "kernel", "host", "launch", "waiting" ...
  Nanoseconds before{0}, after{0};
};

struct DiffSideReport {
  std::string device;  ///< As the trace names it; may be empty.
  Nanoseconds step_time{0};
  bool has_steps = true;  ///< Otherwise it is the length of the recording.
  std::size_t steps = 0;
  std::string compared_step;  ///< Name of the first step compared; empty without steps.
  /// One step; a whole period if steps alternate; all steps if both sides have the same small
  /// number of unlike steps.
  std::size_t compared_steps = 1;
  Nanoseconds compared{0};  ///< Mean length of the compared steps.
  StepTimes times;          ///< As measured, of all steps.
  StepContent content;
  Breakdown breakdown;
  std::optional<Bytes> peak_allocated;  ///< On the fullest device.
  std::size_t tasks = 0;
};

/// Bytes in use at the peak, by the op that requested them.
struct PeakChange {
  std::string op;
  Bytes before{}, after{};
};

/// All records with one name in the compared steps: ops, ranges and calls that begin in them, and
/// the device work that they launch.
struct NameChange {
  std::string name;
  std::int64_t count_before = 0, count_after = 0;
  Nanoseconds time_before{0}, time_after{0};
};

/// If a smaller share of tasks corresponds, the two are hardly the same job.
constexpr double kHardlyTheSameJob = 0.5;

/// The comparison of one rank.
struct Diff {
  std::int32_t rank = 0;
  DiffSideReport before, after;
  std::size_t matched = 0;
  double aligned = 1;           ///< Share of the tasks of both sides that correspond.
  bool has_times = true;        ///< False for memory snapshots, which have no step time.
  bool identical = false;       ///< No difference at all, times included.
  bool same_structure = false;  ///< Nothing added, removed or replaced in the step.
  /// Sorted by the size of their effects, the rest last. before.step_time plus all effects is
  /// after.step_time.
  std::vector<DiffCause> causes;
  std::vector<PathShare> path;  ///< Critical path of the step that is compared.
  std::vector<PeakChange> peak;
  std::vector<NameChange> names;  ///< If asked for: the greatest change of time first.
  Trust trust;                    ///< In both recordings, and in how far they correspond.
  /// Facts about this rank among the others; empty if there are none.
  std::optional<RankFacts> among_before, among_after;
  Notes notes;
  /// Kinds of steps of an engine that serves a model; empty for other jobs.
  std::vector<KindChange> kinds;
};

struct DiffReport {
  std::vector<InputFile> before, after;
  std::vector<Diff> ranks;
  Notes notes;
};

/// The rank with the longest step after the change.
const Diff& slowest_of(const DiffReport& report);
/// The rank to look into: the one for which the others' wait changed most, if that is more than
/// half of the change of the slowest rank's step; otherwise the slowest.
const Diff& decisive_rank(const DiffReport& report);
/// "B takes 38.2 ms longer a step (+12.1 %): 31 ms of it are 12 new cudaStreamSynchronize from
/// train.py:88".
std::string diff_verdict(const Diff& diff);

class Document;
/// For people, in every form.
Document document_of(const DiffReport& report);
/// The object with schema "foretrace.diff/1".
nlohmann::json to_json(const DiffReport& report);
/// One row for each name of each rank, with the columns of Holistic Trace Analysis.
void write_csv(const DiffReport& report, std::ostream& out);

nlohmann::json diff_json(const Diff& diff);

}  // namespace foretrace
