#pragma once

// What if: edits a graph the way an optimization would have changed the program. One file per
// transform in src/transform; the list is transforms.def.

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

/// What a transform did, in words for the answer.
struct Effect {
  std::string summary;                   ///< "412 kernels at a third, 1303 at half of their time"
  std::vector<std::string> assumptions;  ///< What must hold for this to be true, one sentence each.
  Notes notes;
  std::vector<Figure> figures;
  std::size_t changed = 0;  ///< Tasks, dependencies and allocations touched; 0 is reported as
                            ///< "changed nothing".
};

/// A task that gets another duration, and what of it decides by how much; the transform that gave
/// the numbers knows what they mean.
struct RetimedTask {
  TaskId task = kNoTask;
  std::uint32_t kind = 0;
  double amount = 0;
};

/// The change of the whole job that a transform stands for: samples and tokens in a step
/// afterwards, for each one before, and the device (a name or a file; empty: the same one).
struct JobChange {
  double samples = 1, tokens = 1;
  std::string device;
};

class Transform : public Described {
 public:
  /// Throws Error if there is nothing to apply to, with the setting that matched nothing. May leave
  /// the graph half edited then.
  virtual Effect apply(Graph& graph) const = 0;

  /// Whether another value of this setting ("factor") gives the tasks that apply() changes other
  /// durations, and changes nothing else: the same tasks, waits, memory and figures. Then many
  /// values can be tried on one structure, by these two. Where any setting only retimes, nothing
  /// else that apply() does depends on the durations that tasks had before.
  virtual bool only_retimes(std::string_view /*setting*/) const { return false; }
  /// The tasks whose durations apply() changes. Throws Error as apply() does.
  virtual std::vector<RetimedTask> retimed(const Graph& /*graph*/) const { return {}; }
  /// The durations that apply() gives to tasks that took `before`: element by element.
  virtual void retime(std::span<const RetimedTask> /*tasks*/,
                      std::span<const Nanoseconds> /*before*/,
                      std::span<Nanoseconds> /*after*/) const {}

  /// Holds for settings that apply() has accepted.
  virtual JobChange job_change() const { return {}; }

  /// Path of another trace that it learns from (relative to a scenario's file); empty: none.
  /// Whoever applies it reads that trace and hands its graph over by learn() first.
  virtual std::string donor() const { return {}; }
  virtual void set_donor(std::string /*path*/) {}
  virtual void learn(const Graph& /*donor*/) {}
};

struct TransformEntry {
  std::string_view name;
  std::string_view summary;  ///< One line for `list`.
  std::string_view assumes;  ///< What it models and ignores, for `help`: a short paragraph.
  std::unique_ptr<Transform> (*make)();
};

/// Sorted by name.
const std::vector<TransformEntry>& transforms();

/// From {"use": name, settings...}. Throws Error.
std::unique_ptr<Transform> read_transform(const nlohmann::json& step);

/// From "amp" or "prefetch:buffers=2,where.name=/x/". Throws Error.
std::unique_ptr<Transform> read_transform_text(std::string_view step);

}  // namespace foretrace
