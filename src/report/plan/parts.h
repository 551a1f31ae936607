#pragma once

// The pieces of a plan that all its forms show.

#include <string>
#include <vector>

#include "foretrace/answer/plan.h"
#include "report/words/table.h"

namespace foretrace {

std::string plan_heading(const PlanReport& report);
Table plan_table(const PlanReport& report, const std::vector<PlanRow>& rows);
std::string strategy_line(const PlanStrategy& strategy);
Table stages_table(const PlanStrategy& strategy);
/// How many ranked layouts are covered by what is known; empty if none is ranked.
std::string plan_coverage(const PlanReport& report);
/// Why layouts that are not shown lost; empty if all are.
std::string plan_losses(const PlanReport& report);
/// How many of the measured runs are reproduced.
std::string trust_in(const GenerationReport& measured);
Table measured_table(const GenerationReport& measured);
std::vector<std::string> launch_lines(const PlanReport& report);
/// Layouts that need 5 % less memory than the one before, or cost less.
std::vector<PlanRow> thinned_front(const std::vector<PlanRow>& front);
std::string front_title(const PlanReport& report, std::size_t rows);

}  // namespace foretrace
