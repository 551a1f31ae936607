#pragma once

// The sections of the page of a prediction. A section without content has no HTML and is left out.

#include <vector>

#include "document/page/page_shell.h"
#include "foretrace/answer/prediction_page.h"
#include "question/predict/drawn_run.h"
#include "question/predict/timeline_json.h"

namespace foretrace {

/// Shows where the time goes, as bars and as a table.
PageSection time_section(const PredictionPage& page);
/// Shows where the time of a step goes on each of several ranks, and who waits for whom.
PageSection ranks_section(const PredictionPage& page);
/// Shows each recorded step, with the step time and its interval. Empty for a single step.
PageSection steps_section(const PredictionPage& page);
/// Shows the canvas of the timeline with its controls, and its lanes as a table.
PageSection timeline_section(const std::vector<TitledRun>& runs);
/// Shows the work and the waits on the critical path.
PageSection path_section(const std::vector<TitledRun>& runs);
/// Shows when each lane runs the forward pass, the backward pass and the update of one step.
PageSection schedule_section(const std::vector<TitledRun>& runs);
/// Shows peaks of memory with the limit, and the level over time.
PageSection peaks_section(const PredictionPage& page);
PageSection sensitivities_section(const PredictionPage& page);
PageSection certainty_section(const Prediction& prediction);
PageSection evidence_section(const Prediction& prediction);

}  // namespace foretrace
