#pragma once

// A pipeline as tasks whose durations are read from a table, so that the same tasks serve many
// costs.

#include <cstdint>
#include <vector>

#include "generate/generate.h"

namespace foretrace {

/// How sends are modelled: as instant; as a lag that only delays the receiver; or as tasks that
/// queue on a link lane.
enum class Sends : std::uint8_t { instant, overlapping, queued };

struct PipelineKind {
  Sends sends = Sends::instant;
  bool updates = false;  ///< Includes all-reduces and updates.
  friend bool operator==(const PipelineKind&, const PipelineKind&) = default;
};
PipelineKind kind_of(const Schedule& schedule, const PipelineCosts& costs);

/// Rows of the table of times; each has one time per stage.
enum class TimeRow : std::uint8_t {
  forward,
  backward,
  first_half,  ///< Half a backward pass.
  second_half,
  input_gradient,
  weight_gradient,
  forward_in_pair,
  backward_in_pair,
  send_forward,
  send_backward,
  send_first_half,
  send_second_half,
  all_reduce,
  update,
  none
};
constexpr std::size_t kTimeRows = static_cast<std::size_t>(TimeRow::none) + 1;

/// Returns the index of a time in the table.
inline std::uint32_t time_index(TimeRow row, std::int32_t stage, std::int32_t stages) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(row) * stages + stage);
}
/// Throws Error in the same cases as build_pipeline().
std::vector<Nanoseconds> time_table(const Schedule& schedule, const PipelineCosts& costs);

struct PipelineTasks {
  Graph graph;
  std::vector<std::vector<TaskId>> tasks;  ///< By rank and slot, as in PipelineGraph.
  std::vector<std::uint32_t> times;        ///< By task, into the table.
  std::vector<std::uint32_t> lags;         ///< In the order of the graph's dependencies.
};

/// Builds the tasks, with the times of the table in the graph. If `named`, tasks have names and
/// phases, for drawing.
PipelineTasks pipeline_tasks(const Schedule& schedule, const PipelineKind& kind,
                             const std::vector<Nanoseconds>& table, bool named);

}  // namespace foretrace
