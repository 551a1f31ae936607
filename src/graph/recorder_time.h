#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// The name of the shortcoming that a recorder's own work has an unknown part in host work. It only
/// weakens answers about changes: two recordings have it alike.
constexpr std::string_view kRecorderReason = "recorder";

/// The tasks of host threads that are shorter without the recorder's own work, with their durations
/// then. `per_record` is the host time that recording one op, call or block takes. Linear.
std::vector<std::pair<TaskId, Nanoseconds>> without_recorder(const Graph& graph,
                                                             Nanoseconds per_record);

}  // namespace foretrace
