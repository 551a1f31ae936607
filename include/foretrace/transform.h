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
};

/// Facts that decide what a change does, beside the graph and the settings.
struct Context {
  /// The device that the graph's work runs on, if that is not the recorded one.
  const DeviceModel* machine = nullptr;
  /// The graph of the trace that Transform::donor() names.
  const Graph* donor = nullptr;
  /// The graphs of the other ranks of the job, as recorded.
  std::span<const Graph* const> other_ranks = {};
  /// GPUs that steps in front made of each recorded one, which are neighbors on their machine.
  std::int64_t gpus_per_worker = 1;
  /// The settings of the network that the last step in front with one of its own sends on, as JSON;
  /// empty: there is none.
  std::string network = {};
};

/// A task that gets another duration, and the numbers that decide it; their meaning is up to the
/// transform that set them.
struct RetimedTask {
  TaskId task = kNoTask;
  std::uint32_t kind = 0;
  double amount = 0;
};

/// A transform some of whose settings only change durations: many values can then be tried on one
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
  /// The durations that apply() sets for tasks that took `before`, element by element.
  virtual void retime(std::span<const RetimedTask> tasks, std::span<const Nanoseconds> before,
                      std::span<Nanoseconds> after) const = 0;
};

/// How a transform changes the whole job: samples, tokens and ranks in a step afterwards, for each
/// one before, and the device (a name or a file; empty: the same one).
struct JobChange {
  double samples = 1, tokens = 1;
  std::string device = {};
  std::int64_t ranks = 1;
  std::string network = {};  ///< Settings of the network that it sends on, as JSON; empty: none.

  /// On so many ranks, with batches of their own for each of `batches` workers.
  static JobChange on(std::int64_t ranks, std::int64_t batches, std::string network = {}) {
    const auto times = static_cast<double>(batches);
    return {.samples = times, .tokens = times, .ranks = ranks, .network = std::move(network)};
  }
};

class Transform : public Described {
 public:
  /// Throws Error if there is nothing to apply to, with the setting that matched nothing. May leave
  /// the graph half edited then.
  virtual Effect apply(Graph& graph, const Context& context) const = 0;

  /// The transform itself if it has settings that only retime, otherwise nullptr.
  virtual const Retimes* retimes() const { return nullptr; }

  /// Valid for settings that apply() has accepted.
  virtual JobChange job_change() const { return {}; }

  /// Path of another trace that it learns from; empty: none.
  virtual std::string donor() const { return {}; }
};

/// time: shorter steps. throughput: less time for a sample, as steps have other batches. memory:
/// room, at a price in time. device: other hardware. none: an edit or a question that needs an
/// answer from its user first.
enum class Goal { none, time, throughput, memory, device };

/// A condition on the job. single_precision: arithmetic-bound kernels use more than half precision,
/// most of the time.
enum class Premise { any_job, single_precision };

/// Whether a transform is worth trying on a job nobody has said anything about, with which
/// settings, and what it is judged by.
struct Worth {
  Goal goal = Goal::none;
  /// Settings to try, in order of effort: the first that is about as good as the best is advised.
  /// "<device>" stands for the built-in devices above the recorded one, "<network>" for the machine
  /// that the job communicates on, and "<algorithm>" for how its kernels say they do; without such
  /// a machine these are not tried, for the reason in `why_not`.
  std::vector<std::string_view> tries = {};
  double samples = 1;  ///< In a step, for each one recorded.
  /// The work that it applies to. Two that apply to the same work do not add up: one of them is
  /// chosen.
  std::vector<std::string_view> holds = {};
  Premise premise = Premise::any_job;
  std::string_view why_not = "a manual edit: you choose its settings";  ///< Without a goal.
};

struct TransformEntry {
  std::string_view name = {};
  std::string_view summary = {};  ///< One line for `list`.
  std::unique_ptr<Transform> (*make)() = nullptr;
  std::string_view assumes = {};  ///< The effects it models and ignores: a short paragraph.
  Worth worth = {};
};

/// Sorted by name.
const std::vector<TransformEntry>& transforms();
/// For programs that offer them: [{"name", "summary", "assumes", "synonyms", "defaults",
/// "settings": the properties of a JSON Schema, "order": their names as help lists them}].
nlohmann::json describe_transforms();

/// From {"use": name, settings...}. Throws Error.
std::unique_ptr<Transform> read_transform(const nlohmann::json& step);

/// From "amp" or "prefetch:buffers=2,where.name=/x/". Throws Error.
std::unique_ptr<Transform> read_transform_text(std::string_view step);

}  // namespace foretrace
