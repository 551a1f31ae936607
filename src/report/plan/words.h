#pragma once

// Sentences and tables of a plan, shared by its formats.

#include <string>
#include <vector>

#include "document/words/table.h"
#include "foretrace/answer/plan.h"

namespace foretrace {

std::string plan_heading(const PlanReport& report);
Table plan_table(const PlanReport& report, const std::vector<PlanRow>& rows);
std::string strategy_line(const PlanStrategy& strategy);
Table stages_table(const PlanStrategy& strategy);
/// Says how many ranked layouts are covered by measurements; empty if none is ranked.
std::string plan_coverage(const PlanReport& report);
/// Says why the layouts that are not shown lost; empty if all are shown.
std::string plan_losses(const PlanReport& report);
/// Says how many of the measured runs are reproduced.
std::string reproduction_text(const GenerationReport& measured);
Table measured_table(const GenerationReport& measured);
std::vector<std::string> launch_lines(const PlanReport& report);
/// Returns the layouts of the front that need at least 5 % less memory than the one before, or cost
/// less.
std::vector<PlanRow> thinned_front(const std::vector<PlanRow>& front);
std::string front_title(const PlanReport& report, std::size_t rows);

}  // namespace foretrace
