#pragma once

#include <string>

#include "foretrace/answer/pipeline.h"
#include "report/words/table.h"

namespace foretrace {

/// A line for each rank: passes in cells as wide as they are long. The middle of long runs is left
/// out.
std::string draw_pipeline(const PipelineReport& report);
Table pipeline_table(const PipelineReport& report);
/// "1f1b: 4 stages, 8 micro-batches"
std::string pipeline_heading(const PipelineReport& report);
/// The meaning of the letters of a drawing.
std::string pipeline_legend(const PipelineReport& report);

}  // namespace foretrace
