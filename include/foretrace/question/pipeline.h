#pragma once

// How a pipeline schedule runs, for times that the question gives.

#include <iosfwd>
#include <string>

#include "foretrace/answer/pipeline.h"

namespace foretrace {

struct PipelineQuestion {
  /// "NAME:settings", as in "zb_h1:stages=8,forward=2ms". With `file`, the settings can only be
  /// times, and NAME may be left out.
  std::string plan;
  std::string file;  ///< A schedule as CSV of PyTorch; empty: the rule NAME makes one.
};

/// Throws Error on an unknown or unsupported name or setting, and on a schedule in the file that
/// cannot be run.
PipelineReport show_pipeline(const PipelineQuestion& question);

/// The schedule as CSV of PyTorch. Throws Error as schedule_to_csv() does.
std::string pipeline_csv(const PipelineQuestion& question);

/// Writes name, summary and settings; false if there is no such schedule.
bool write_schedule_help(const std::string& name, std::ostream& out);

}  // namespace foretrace
