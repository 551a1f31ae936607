#pragma once

// The parts of a dependency graph (graph.h): tasks, the lanes they run on, the dependencies they
// wait for, the memory they use and the steps they belong to.

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/names.h"
#include "foretrace/units.h"

namespace foretrace {

enum class TaskId : std::uint32_t {};
enum class LaneId : std::uint32_t {};
constexpr TaskId kNoTask{0xffffffff};
constexpr LaneId kNoLane{0xffffffff};
constexpr std::uint32_t index(TaskId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(LaneId id) { return static_cast<std::uint32_t>(id); }

/// host: work of a CPU thread. input: data loading on a CPU thread or worker. launch: a call that
/// launches work on a device. sync: a call that waits for a device. copy_in is host to device,
/// copy_out device to host. transfer: bytes on a link or disk. unknown: the host waits for device
/// work that the recording lacks; it runs on neither side, so no change of other work changes it.
/// marker: takes no time, others depend on it.
enum class TaskKind : std::uint8_t {
  host,
  input,
  launch,
  sync,
  kernel,
  collective,
  copy_in,
  copy_out,
  copy_on_device,
  copy_peer,
  fill,
  transfer,
  unknown,
  marker
};
/// Classifies tasks by the work they do, for sums over tasks. Markers are `none`.
enum class TaskClass : std::uint8_t {
  compute,
  communication,
  copy,
  input,
  host,
  launch,
  sync,
  unknown,
  none
};
/// Where the bytes of a task move. host_link: between a host and a device. peers: between devices.
/// storage: on a link or disk of the host.
enum class BytePath : std::uint8_t { none, on_device, host_link, peers, storage };

enum class Phase : std::uint8_t { none, input, forward, backward, update };

/// measured: a record says so (correlation id, sync record). structural: it follows from how lanes
/// work. inferred: by a named rule. assumed: a scenario put it there.
enum class Provenance : std::uint8_t { measured, structural, inferred, assumed };

/// How much of a task may be left when the next one starts.
///
///     A  ####        A at half its time   ##
///     B     ####                           ####      a quarter of A is left in both
///
/// The overlap is a share of the task, not a time: it scales with the task, so that no task starts
/// before the one that it waits for.
class TailShare {
 public:
  constexpr TailShare() = default;
  /// The tail nearest to `share`, which is clamped to [0, 1].
  static TailShare nearest(double share) {
    TailShare tail;
    tail.parts_ = static_cast<std::uint16_t>(std::lround(std::clamp(share, 0.0, 1.0) * kWhole));
    return tail;
  }

  double share() const { return parts_ / kWhole; }
  bool empty() const { return parts_ == 0; }
  /// The tail of a task with this duration, rounded down.
  Nanoseconds of(Nanoseconds duration) const { return Nanoseconds(of(duration.count(), share())); }
  static std::int64_t of(std::int64_t duration, double share) {
    return static_cast<std::int64_t>(static_cast<double>(duration) * share);
  }
  friend bool operator==(const TailShare&, const TailShare&) = default;

 private:
  static constexpr double kWhole = 65535;
  std::uint16_t parts_ = 0;  ///< In units of 1 / kWhole.
};

/// A tail, and the lag from its beginning to the start of the other task.
struct Overlap {
  TailShare tail{};
  Nanoseconds lag{0};

  /// The lag past the finish of a task of this duration; negative means before its finish.
  Nanoseconds past_finish(Nanoseconds duration) const { return lag - tail.of(duration); }
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

/// The overlap that lets a task start exactly `part` before the end of a task that takes `whole`,
/// or together with it if `part` is longer.
inline Overlap overlap_of(Nanoseconds part, Nanoseconds whole) {
  if (part <= Nanoseconds(0) || whole <= Nanoseconds(0)) return {};
  part = std::min(part, whole);
  const double share = static_cast<double>(part.count()) / static_cast<double>(whole.count());
  // Rounding to the nearest share can make the tail too short by half a digit.
  constexpr double kDigit = 1.0 / 65535;
  Overlap found{TailShare::nearest(share), {}};
  if (found.tail.of(whole) < part) found.tail = TailShare::nearest(share + kDigit);
  found.lag = found.tail.of(whole) - part;
  return found;
}

struct Task {
  Nanoseconds duration{0};
  /// Least time from the finish of the task in front on the lane, less `tail`, to this start. Never
  /// negative.
  Nanoseconds gap{0};
  Bytes bytes{};     ///< Moved by a copy, transfer or collective, otherwise 0.
  double flops = 0;  ///< Flops of a kernel, if its shapes are known; otherwise 0.
  NameId name{};
  NameId module{};                    ///< "BertModel_0/Linear_3", or empty.
  std::uint32_t record = 0xffffffff;  ///< Its record, by number in the trace table; or none.
  std::int32_t step = -1;             ///< Into Graph::steps(), or -1.
  std::int32_t layer = -1;            ///< Layer of the model in forward order, or -1 if unknown.
  std::int32_t priority = 0;          ///< On a priority lane, tasks with greater values run first.
  /// How many times over the blocks of a kernel fill the device. Below 1, more of the same work
  /// fits into the same time; 0: unknown.
  float fill = 0;
  /// Inner size of a matrix product (k of m x k by k x n), if its shapes are known; otherwise 0.
  float inner = 0;
  TaskKind kind = TaskKind::kernel;
  Phase phase = Phase::none;
  /// The share of the task in front that may still be left when this one starts. It is cleared when
  /// another task comes to be in front.
  TailShare tail{};
};

enum class LaneKind : std::uint8_t {
  host_thread,
  stream,
  copy_engine,
  worker,
  link,
  storage,
  origin
};

/// fifo: tasks run one at a time, in order. shared: tasks run together and divide `capacity`
/// max-min fairly; a task's work is its bytes, and its duration, if not 0, is the least time it
/// takes however much capacity is free. priority: the most urgent ready task runs, and a more
/// urgent one preempts it at the end of a `slice`.
enum class Discipline : std::uint8_t { fifo, shared, priority };

struct Lane {
  std::string name;
  LaneKind kind = LaneKind::stream;
  std::int32_t device = -1;  ///< -1 is the host.
  std::int32_t rank = 0;
  Discipline discipline = Discipline::fifo;
  Bandwidth capacity{};  ///< Capacity of a shared lane.
  Nanoseconds slice{0};  ///< Time slice of a priority lane; 0: preempts at any time.
};

enum class Anchor : std::uint8_t { finish, start };

/// The rule by which a task waits. Code may depend on it: step times begin with a measured launch,
/// remove_sync keeps waits for the launch queue, and so on.
///
/// in_line: a task waits for the one in front on its lane. launch: for the call that launches it.
/// launch_queue: a call, for room in the queue. blocking_copy, device_sync: a call, for the device.
/// event_wait, default_stream, device_full: for work on another stream. other_ranks: a collective,
/// for the last of its ranks. recorded_start: for its recorded start time, because no cause is
/// known.
enum class Rule : std::uint8_t {
  in_line,
  launch,
  launch_queue,
  blocking_copy,
  device_sync,
  event_wait,
  default_stream,
  device_full,
  collective_input,
  update_after_collectives,
  thread_handover,
  wait_for_thread,
  other_ranks,
  recorded_start
};

/// The reason for a wait: a rule, or a text that is only reported, as wait_reason_named() makes it.
class WaitReason {
 public:
  constexpr WaitReason() = default;
  constexpr WaitReason(Rule rule)  // NOLINT(google-explicit-constructor): `.why = Rule::launch`
      : code_(kFirstRule + static_cast<std::uint32_t>(rule)) {}

  constexpr bool empty() const { return code_ == 0; }
  friend constexpr auto operator<=>(const WaitReason&, const WaitReason&) = default;

 private:
  friend WaitReason wait_reason_named(Names& names, std::string_view text);
  friend std::string_view to_string(WaitReason why, const Names& names);
  static constexpr std::uint32_t kFirstRule = 0xffffff00;
  std::uint32_t code_ = 0;  ///< A rule from kFirstRule on, a NameId below it.
};
/// The rule with this name ("launch", "event wait"), or the text itself if there is none.
WaitReason wait_reason_named(Names& names, std::string_view text);
std::string_view to_string(WaitReason why, const Names& names);

/// `after` starts no earlier than `lag` (never negative) past the start of `before`, or past its
/// finish less the `tail`. After a task on a shared or priority lane, whose finish is not known in
/// advance, the tail is empty.
struct Dependency {
  TaskId before = kNoTask;
  TaskId after = kNoTask;
  Nanoseconds lag{0};
  Anchor anchor = Anchor::finish;
  Provenance provenance = Provenance::structural;
  TailShare tail{};
  WaitReason why{};
};

/// The earliest start of `after` that `wait` allows, with `before` from `start` to `finish`.
inline Nanoseconds released_at(const Dependency& wait, Nanoseconds start, Nanoseconds finish) {
  if (wait.anchor == Anchor::start) return start + wait.lag;
  return finish - wait.tail.of(finish - start) + wait.lag;
}
/// The earliest start of `task` that its lane allows, after a task from `start` to `finish`.
inline Nanoseconds released_at(const Task& task, Nanoseconds start, Nanoseconds finish) {
  return finish - task.tail.of(finish - start) + task.gap;
}

/// A collective, or a message between ranks, as one rank recorded it. Texts are names of the graph.
/// Facts that the recording lacks are empty, 0 or -1.
struct RecordedCollective {
  TaskId task = kNoTask;
  NameId operation{};          ///< "allreduce", or the name of its kernel without arguments.
  NameId type{};               ///< The type of its elements.
  NameId group{}, members{};   ///< The process group, and its ranks as "[0, 1]".
  std::int64_t elements = -1;  ///< Input elements; ranks may differ in those of an all-to-all.
  std::int64_t sequence = -1;  ///< Number within its group.
  std::int32_t group_size = 0;
  Bytes bytes{};  ///< The whole buffer, as nccl-tests counts it; 0 if unknown.
};

/// The use of an allocation. workspace: made and freed inside one op. temporary: neither kept for
/// the backward pass nor for the next step. activation: made in the forward pass and kept for the
/// backward pass.
enum class MemoryUse : std::uint8_t {
  unknown,
  parameter,
  gradient,
  optimizer_state,
  activation,
  temporary,
  workspace,
  input
};

/// Bytes on a device between two tasks; kNoTask: since before the recording, or until after it.
/// Zero bytes means deleted; transforms delete allocations this way.
struct Allocation {
  Bytes bytes{};      ///< As the allocator counts them, rounding included.
  Bytes requested{};  ///< As the program asked for them; 0 if only `bytes` is known.
  TaskId made_by = kNoTask;
  TaskId freed_by = kNoTask;
  /// When it is made and freed, as time since the start of `made_by` and of `freed_by`, but no
  /// later than at their ends.
  Nanoseconds made_after{0};
  Nanoseconds freed_after{0};
  /// Order among simultaneous allocator events, as recorded; an allocation that a transform adds
  /// takes the order of the one it replaces.
  std::uint32_t made_order = 0;
  std::uint32_t freed_order = 0;
  std::int32_t device = 0;
  LaneId stream = kNoLane;  ///< The stream whose pool it came from, if known.
  NameId op{};              ///< The op that asked for it, "aten::convolution"; may be empty.
  NameId stack{};           ///< Source lines, innermost first, joined by ';'; may be empty.
  MemoryUse use = MemoryUse::unknown;
};

/// A read or write of an allocation (number in Graph::allocations()) by `task`. It is measured if
/// an execution trace has it, otherwise inferred.
struct Access {
  std::uint32_t allocation = 0;
  TaskId task = kNoTask;
  bool writes = false;
  Provenance provenance = Provenance::inferred;
};

struct Step {
  std::string name;  ///< "ProfilerStep#7"
};

/// How the steps of a recording were found: by the profiler's own markers, by ranges that the
/// program named, by calls of Optimizer.step, or only because activities repeat in the same order.
enum class StepSource : std::uint8_t { none, markers, annotation, optimizer, period };

/// How the steps were found, and which of them the step time is taken from. It is decided once,
/// from the recorded times, so that replays and what-ifs measure the same steps as the recording.
struct StepRule {
  StepSource source = StepSource::none;
  /// Number of steps after which the work repeats: 2 if the optimizer runs in every second step.
  std::int32_t period = 1;
  bool skips_first = false;  ///< The first period is an outlier and does not count.
  /// The step time of a recording with few steps, and the mean that it belongs to; 0 with more.
  Nanoseconds recorded_median{0}, recorded_mean{0};
  /// By how much the host took longer for all these steps than they last.
  Nanoseconds host_surplus{0};
};

/// Something that a recording lacks, or states although it is impossible, found while its graph was
/// made. It is a reason of the grade of every answer about the recording.
struct Shortcoming {
  std::string name;  ///< As in Trust: "launches_without_work".
  /// Says what is missing and how much: "18 of 20 launches have no device work".
  std::string text;
  double share = 0;  ///< The missing part of what `text` counts.
  /// Whether answers may be completely wrong; else they only have a known weakness.
  bool is_fatal = false;
};

/// The bytes of all gradients of a step, as ops or kernels show them; see
/// src/infer/device/gradient_sizes.cc.
struct GradientEstimate {
  Bytes bytes{}, lower{}, upper{};  ///< The estimate and its ends; 0: nothing shows them.
  std::string source = {};          ///< "the time of the optimizer's kernels".
};

/// Kernels and collectives that take longer because they overlap, after a transform has added
/// collectives; see src/transform/parallel/contention.h.
struct Contended {
  struct Lengthened {
    TaskId task = kNoTask;
    double factor = 1;
  };
  std::vector<Lengthened> tasks = {};
  /// By how much a kernel takes longer while a collective runs beside it, and a collective while
  /// kernels run; 0: nothing was added.
  double kernels = 0, collectives = 0;
};

/// The change that torch.autocast would make in the work of an op, on one of its kernels; see
/// src/infer/device/autocast.cc.
struct AutocastWork {
  TaskId task = kNoTask;
  float narrow = 1;           ///< The share of what it moves that would be in half precision.
  std::uint32_t casts = 0;    ///< Conversions that the device would do in front of the kernel.
  std::int64_t weights = 0;   ///< Elements of weights, or of their gradients, that they convert.
  std::int64_t elements = 0;  ///< Other elements that they convert.
};

/// Time without a known cause; see "Honesty" in docs/design.md. Kept with the graph so that every
/// answer can print it.
struct Unexplained {
  std::int64_t pinned_tasks = 0;  ///< Starts pinned to recorded times.
  Nanoseconds lag{0};             ///< Time on device lanes that is kept as a lag without a cause.
  Nanoseconds peers{0};   ///< Time of collectives that only other ranks explain; not in `lag`.
  Nanoseconds window{0};  ///< Length of the recording.
  /// Host time that recording one op, call or block took, as far as nested ops show; 0: not known.
  Nanoseconds per_record{0};
  std::vector<Shortcoming> shortcomings = {};
};

/// From the table of kinds in src/graph/kinds.cc. A marker, a transfer and unknown work run on
/// neither side.
bool runs_on_device(TaskKind kind);
bool runs_on_host(TaskKind kind);
TaskClass class_of(TaskKind kind);
BytePath byte_path(TaskKind kind);

inline bool communicates(TaskKind kind) { return class_of(kind) == TaskClass::communication; }
/// Includes fills: they keep a device busy in the same way.
inline bool is_copy(TaskKind kind) { return class_of(kind) == TaskClass::copy; }
/// Work of a thread other than loading data.
inline bool is_host_work(TaskKind kind) { return runs_on_host(kind) && kind != TaskKind::input; }
inline bool moves_bytes(TaskKind kind) { return byte_path(kind) != BytePath::none; }
inline bool crosses_host_link(TaskKind kind) { return byte_path(kind) == BytePath::host_link; }
inline bool is_between_peers(TaskKind kind) { return byte_path(kind) == BytePath::peers; }
/// Whether it needs a link of its device but not the compute units, and so can hide behind kernels.
inline bool leaves_device(TaskKind kind) {
  return crosses_host_link(kind) || is_between_peers(kind);
}

std::string_view to_string(TaskKind kind);
std::optional<TaskKind> task_kind_named(std::string_view name);
const std::vector<std::string_view>& task_kind_names();
std::string_view to_string(Phase phase);
std::optional<Phase> phase_named(std::string_view name);
const std::vector<std::string_view>& phase_names();
std::string_view to_string(Provenance provenance);
std::string_view to_string(StepSource source);
std::string_view to_string(MemoryUse use);
std::optional<MemoryUse> memory_use_named(std::string_view name);
const std::vector<std::string_view>& memory_use_names();
std::string_view to_string(LaneKind kind);
std::optional<LaneKind> lane_kind_named(std::string_view name);

}  // namespace foretrace
