#pragma once

#include <span>
#include <vector>

#include "foretrace/timeline.h"
#include "simulate/clocked.h"

namespace foretrace {

/// Finds what each task of a replayed graph waited for last. If several waits end at the same time,
/// the wait for the task with the smallest id counts.
std::vector<StartReason> find_reasons(const Graph& graph, const Timeline& timeline,
                                      std::span<const OvertakenTask> overtaken);

}  // namespace foretrace
