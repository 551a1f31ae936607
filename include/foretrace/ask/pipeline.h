#pragma once

// How a pipeline schedule runs, for times that the question gives.

#include <iosfwd>
#include <string>

#include "foretrace/answer/pipeline.h"

namespace foretrace {

struct PipelineQuestion {
  /// "NAME:settings", as in "zb_h1:stages=8,forward=2ms"; with a file settings of times alone,
  /// after a name or not.
  std::string plan;
  std::string file;  ///< A schedule as CSV of PyTorch; empty: made by the rule NAME.
};

/// Throws Error on a name or setting that is unknown or not served, and on a schedule in the file
/// that cannot be run.
PipelineReport show_pipeline(const PipelineQuestion& question);

/// Its schedule as CSV of PyTorch. Throws Error as schedule_to_csv() does.
std::string pipeline_csv(const PipelineQuestion& question);

/// Writes name, summary and settings; false if there is no such schedule.
bool write_schedule_help(const std::string& name, std::ostream& out);

}  // namespace foretrace
