#pragma once

// Writes the files that a prediction leaves behind, and refuses answers under --strict.

#include "ask/predict/answer.h"
#include "foretrace/ask/predict.h"

namespace foretrace {

/// Whether the path of the timeline is a folder, for the ranks of a job.
bool wants_file_for_each_rank(const PredictOptions& options);

/// Writes the timelines and the page that the options ask for. Throws TraceError under --strict if
/// the answer has warnings or poor trust, and Error if a file cannot be written.
void finish(const Answer& answer, const PredictOptions& options);

}  // namespace foretrace
