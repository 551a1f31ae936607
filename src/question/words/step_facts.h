#pragma once

// The facts that every answer shows with a step time: how many steps it is based on, how these were
// found, and how far they differ.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "foretrace/timeline.h"

namespace foretrace {

/// Returns a text such as "5 steps marked by the profiler, mean 177 ms, slowest 181 ms, spread 7.1
/// %".
std::string step_facts(const StepTimes& times);

/// Adds counted_steps, mean_ns, fastest_ns, slowest_ns, spread, period and steps_found_by.
void add_step_facts(const StepTimes& times, nlohmann::json& object);

}  // namespace foretrace
