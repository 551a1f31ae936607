#pragma once

// A what-if: a transform edits a graph the way an optimization would have changed the program. One
// file per transform in src/transform; the list is transforms.def.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/answer/applicability.h"
#include "foretrace/answer/figure.h"
#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/machine.h"
#include "foretrace/notes.h"

namespace foretrace {

/// The changes that a transform made, in words for the answer.
struct Effect {
  std::string summary;                   ///< "412 kernels at a third, 1303 at half of their time"
  std::vector<std::string> assumptions;  ///< Assumptions of the change, one sentence each.
  Notes notes;
  std::vector<Figure> figures;
  std::size_t changed = 0;  ///< Tasks, dependencies and allocations touched; 0 is reported as
                            ///< "changed nothing".
  Applicability applies;    ///< Result of Transform::applies() before the change.
  TimesError times_error = {};
  TransferDoubt transfers = {};
  std::vector<std::string> doubts = {};  ///< Why the grade is fair at best.
  Nanoseconds host_saved{0};             ///< Host work that is gone, if it happened in every step.
  double slower = 1;  ///< Up to this many times the step time is possible, as one of `doubts` says.
};

/// Facts that decide what a transform does, in addition to the graph and its settings.
struct Context {
  /// The device that the graph's work runs on, if that is not the recorded one.
  const DeviceModel* machine = nullptr;
  /// The graph of the trace that Transform::donor() names.
  const Graph* donor = nullptr;
  /// The graphs of the other ranks of the job, as recorded.
  std::span<const Graph* const> other_ranks = {};
  /// Number of GPUs that earlier transforms made of each recorded GPU; they are neighbors on their
  /// machine.
  std::int64_t gpus_per_worker = 1;
  /// JSON settings of the network of the last earlier transform that has one of its own; empty if
  /// none has.
  std::string network = {};
  /// Factors by which earlier transforms made the batch and the sequences of each worker grow.
  double samples = 1, positions = 1;
};

/// A task that gets another duration, with numbers that determine it. Their meaning is up to the
/// transform that sets them.
struct RetimedTask {
  TaskId task = kNoTask;
  std::uint32_t kind = 0;
  double amount = 0;
};

/// A transform that has settings which only change durations: many values can then be tried on one
/// structure.
class Retimes {
 public:
  virtual ~Retimes() = default;
  /// Whether another value of this setting ("factor") only changes the new durations of the tasks
  /// that apply() changes: tasks, waits, memory and figures stay the same. If any setting only
  /// retimes, nothing else in apply() depends on the earlier durations of tasks.
  virtual bool only_retimes(std::string_view setting) const = 0;
  /// The tasks whose durations apply() changes. Throws Error as apply() does.
  virtual std::vector<RetimedTask> retimed(const Graph& graph) const = 0;
  /// Computes the durations that apply() sets for tasks that took `before`, element by element.
  virtual void retime(std::span<const RetimedTask> tasks, std::span<const Nanoseconds> before,
                      std::span<Nanoseconds> after) const = 0;
};

/// How a transform changes the whole job: the factors by which samples, tokens and ranks of a step
/// grow, and the device (a name or a file; empty: unchanged).
struct JobChange {
  double samples = 1, tokens = 1;
  std::int64_t parts = 1;  ///< Into which the samples of a step are divided.
  std::string device = {};
  std::int64_t ranks = 1;
  std::string network = {};  ///< Settings of the network that it sends on, as JSON; empty: none.

  /// For `ranks` times as many ranks, with a batch for each of `batches` workers.
  static JobChange on(std::int64_t ranks, std::int64_t batches, std::string network = {}) {
    const auto times = static_cast<double>(batches);
    return {.samples = times, .tokens = times, .ranks = ranks, .network = std::move(network)};
  }
};

class Transform : public Described {
 public:
  /// Throws Error if there is nothing to apply to, naming the setting that matched nothing. The
  /// graph may be left half edited.
  virtual Effect apply(Graph& graph, const Context& context) const = 0;

  /// How much of its work in the graph the change is possible for, in a program that really runs.
  /// apply() leaves the rest as it is; where the share is 0 it still makes the edit, whose result
  /// then is not what the program would do.
  virtual Applicability applies(const Graph& /*graph*/) const { return {}; }

  /// The transform itself if it has settings that only retime, otherwise nullptr.
  virtual const Retimes* retimes() const { return nullptr; }

  /// REQUIRES: apply() has accepted the settings.
  virtual JobChange job_change() const { return {}; }

  /// Whether settings say what the job is like afterwards, relative to what was recorded, so that a
  /// second one of this kind would take the first one's result for the recording.
  virtual bool happens_once() const { return false; }

  /// Path of another trace that the transform learns from; empty if there is none.
  virtual std::string donor() const { return {}; }
};

/// time: shorter steps. throughput: less time per sample, with other batches. memory: free memory,
/// at a price in time. device: other hardware. none: an edit, or a question that its user must
/// answer first.
enum class Goal { none, time, throughput, memory, device };

/// Whether a transform is worth trying on a job about which nothing else is known, with which
/// settings, and how the result is judged.
struct AdvicePolicy {
  Goal goal = Goal::none;
  /// Settings to try, in order of effort: the first that is about as good as the best is suggested.
  /// "<device>" stands for each built-in device above the recorded one, "<network>" for the machine
  /// whose network the job uses, and "<algorithm>" for the algorithm that its kernels name. Without
  /// such a machine, settings with "<network>" are not tried, for the reason in `why_not`.
  std::vector<std::string_view> tries = {};
  double samples = 1;  ///< Samples in a step, for each recorded one.
  /// The work that it applies to. Gains of transforms that apply to the same work do not add up, so
  /// only one of them is chosen.
  std::vector<std::string_view> applies_to = {};
  /// Reason for not trying it, if there is no goal or no network.
  std::string_view why_not = "a manual edit: you choose its settings";
};

struct TransformEntry {
  std::string_view name = {};
  std::string_view summary = {};  ///< One line for `list`.
  std::unique_ptr<Transform> (*make)() = nullptr;
  std::string_view assumes = {};  ///< The effects it models and ignores: a short paragraph.
  AdvicePolicy advice = {};
};

/// Sorted by name.
const std::vector<TransformEntry>& transforms();
/// For programs that offer transforms: [{"name", "summary", "assumes", "synonyms", "defaults",
/// "settings": the properties of a JSON Schema, "order": their names as help lists them}].
nlohmann::json describe_transforms();

/// Reads {"use": name, settings...}. Throws Error.
std::unique_ptr<Transform> read_transform(const nlohmann::json& step);

/// Reads "amp" or "prefetch:buffers=2,where.name=/x/". Throws Error.
std::unique_ptr<Transform> read_transform_text(std::string_view step);

}  // namespace foretrace
