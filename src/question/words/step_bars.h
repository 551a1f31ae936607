#pragma once

// The parts of a step as bars of a page, which needs the style page/prediction.css.

#include <string>
#include <vector>

#include "document/page/page_charts.h"
#include "foretrace/units.h"
#include "question/words/wording.h"

namespace foretrace {

/// Length of the longest bar, as a share of the width; the rest stays free on the right.
inline constexpr double kWidestBar = 0.98;

/// Returns a bar of the parts of a step, on a scale that ends at `widest`.
BarRow step_bar(const std::string& name, const std::vector<StepPart>& parts,
                Nanoseconds StepPart::*time, Nanoseconds widest);

/// Names the colours of all parts that a step has somewhere.
std::string parts_legend(const std::vector<StepPart>& parts);

/// Returns the parts of one step, or of two on one scale unless `second` is empty, with a legend.
std::string step_bars(const std::string& described, const std::string& first,
                      const std::string& second, const Breakdown& before, const Breakdown& after);

}  // namespace foretrace
