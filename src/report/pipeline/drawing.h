#pragma once

#include <string>

#include "foretrace/answer/pipeline.h"
#include "report/words/table.h"

namespace foretrace {

/// Draws a line for each rank, with passes as cells whose width shows their time. The middle of a
/// long drawing is left out.
std::string draw_pipeline(const PipelineReport& report);
Table pipeline_table(const PipelineReport& report);
/// Returns a heading such as "1f1b: 4 ranks, 8 micro-batches".
std::string pipeline_heading(const PipelineReport& report);
/// Explains the letters of a drawing.
std::string pipeline_legend(const PipelineReport& report);

}  // namespace foretrace
