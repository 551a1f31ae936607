#pragma once

// Every answer shows these facts beside a step time: how many steps it rests on, how these were
// found, and how far they differ.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "foretrace/timeline.h"

namespace foretrace {

/// "5 steps by markers of the profiler, mean 177 ms, slowest 181 ms, spread 7.1 %".
std::string step_facts(const StepTimes& times);

/// counted_steps, mean_ns, fastest_ns, slowest_ns, spread, period, steps_found_by.
void add_step_facts(const StepTimes& times, nlohmann::json& object);

}  // namespace foretrace
