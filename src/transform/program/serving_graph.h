#pragma once

// Steps of an engine that serves a model, as far as the names of steps tell them: a step that only
// decodes reads all weights and the keys and values of each sequence once.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/transform.h"
#include "trace/serving/serving_step.h"
#include "transform/edit/device_change.h"

namespace foretrace {

class ServingGraph final {
 public:
  explicit ServingGraph(const Graph& graph);

  /// The step of a task if an engine named it; nullptr for other tasks.
  const ServingStep* step_of(const Task& task) const;
  /// The step of a task if it only decodes; nullptr for other tasks.
  const ServingStep* decoding(const Task& task) const;
  /// Whether any step is named as one of an engine.
  bool serves() const { return serves_; }

  /// Whether a product of unknown shape is of a step that decodes so few tokens that reading its
  /// weights, of 2 bytes each, takes longer than the arithmetic.
  bool reads_weights(const Task& task, const OperationRate& rate) const;
  bool is_attention(const Task& task) const;
  bool runs_experts(const Task& task) const;
  /// Whether the cache of keys and values is in eight bits already.
  bool has_narrow_cache() const;

  /// The tasks of attention in steps that only decode. Throws Error if there are none.
  std::vector<TaskId> decode_attention() const;
  /// For changes of what such attention reads; says why it does not apply to the rest.
  Applicability applies_to_decode_attention() const;
  /// For changes of batches and sequences that are computed whole: steps that decode one token of
  /// each sequence are for `instead`.
  Applicability applies_beyond_decoding(std::string_view instead) const;
  /// The share of the time of the tasks that `counts` is true for that is in steps that only
  /// decode, and where the rest is. The texts name the tasks, and why steps with prompts stay.
  Applicability applies_to_decoding(const std::function<bool(const Task&)>& counts,
                                    std::string_view name, std::string_view why_prompts) const;

 private:
  const Graph& graph_;
  std::vector<std::optional<ServingStep>> steps_;  ///< By number of the step.
  bool serves_ = false;
};

/// The time of decode attention that reads `factor` times the bytes.
Nanoseconds with_cache_bytes(Nanoseconds recorded, const DeviceModel& device, double factor);

/// The text of a refusal of recordings without named steps.
inline constexpr std::string_view kNoServingSteps =
    "no step is named as one of an engine that serves a model (execute_context_..., "
    "step[DECODE ...], _forward_step)";

}  // namespace foretrace
