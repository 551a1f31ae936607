#pragma once

// What-ifs: a transform edits a graph the way an optimization would have changed the program. One
// file per transform in src/transform; the list is transforms.def.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/figure.h"
#include "foretrace/fields.h"
#include "foretrace/graph.h"
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

/// A task that gets another duration, and the numbers that decide it; their meaning is up to the
/// transform that set them.
struct RetimedTask {
  TaskId task = kNoTask;
  std::uint32_t kind = 0;
  double amount = 0;
};

/// How a transform changes the whole job: samples and tokens in a step afterwards, for each one
/// before, and the device (a name or a file; empty: the same one).
struct JobChange {
  double samples = 1, tokens = 1;
  std::string device;
};

class Transform : public Described {
 public:
  /// Throws Error if there is nothing to apply to, with the setting that matched nothing. May leave
  /// the graph half edited then.
  virtual Effect apply(Graph& graph) const = 0;

  /// Whether another value of this setting ("factor") only changes the new durations of the tasks
  /// that apply() changes: tasks, waits, memory and figures stay the same. Then many values can be
  /// tried on one structure, with these two functions. If any setting only retimes, nothing else in
  /// apply() depends on the earlier durations of tasks.
  virtual bool only_retimes(std::string_view /*setting*/) const { return false; }
  /// The tasks whose durations apply() changes. Throws Error as apply() does.
  virtual std::vector<RetimedTask> retimed(const Graph& /*graph*/) const { return {}; }
  /// The durations that apply() sets for tasks that took `before`, element by element.
  virtual void retime(std::span<const RetimedTask> /*tasks*/,
                      std::span<const Nanoseconds> /*before*/,
                      std::span<Nanoseconds> /*after*/) const {}

  /// Valid for settings that apply() has accepted.
  virtual JobChange job_change() const { return {}; }

  /// Path of another trace that it learns from (relative to the scenario's file); empty: none. The
  /// caller of apply() reads that trace and passes its graph to learn() first.
  virtual std::string donor() const { return {}; }
  virtual void set_donor(std::string /*path*/) {}
  virtual void learn(const Graph& /*donor*/) {}
};

struct TransformEntry {
  std::string_view name;
  std::string_view summary;  ///< One line for `list`.
  std::string_view assumes;  ///< The effects it models and ignores, for `help`: a short paragraph.
  std::unique_ptr<Transform> (*make)();
};

/// Sorted by name.
const std::vector<TransformEntry>& transforms();

/// From {"use": name, settings...}. Throws Error.
std::unique_ptr<Transform> read_transform(const nlohmann::json& step);

/// From "amp" or "prefetch:buffers=2,where.name=/x/". Throws Error.
std::unique_ptr<Transform> read_transform_text(std::string_view step);

}  // namespace foretrace
