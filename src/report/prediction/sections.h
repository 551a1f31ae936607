#pragma once

// The sections of the page of a prediction. One without anything to say has no HTML and is left
// out.

#include <vector>

#include "foretrace/answer/prediction_page.h"
#include "report/page/page_shell.h"
#include "report/prediction/drawn_run.h"
#include "report/prediction/timeline_json.h"

namespace foretrace {

/// Bars and the table of where the time goes.
PageSection time_section(const PredictionPage& page);
/// The canvas, its controls, and its lanes as a table.
PageSection timeline_section(const std::vector<TitledRun>& runs);
/// The critical path's work and waits.
PageSection path_section(const std::vector<TitledRun>& runs);
/// When the lanes of one step go forward, backward and update.
PageSection schedule_section(const std::vector<TitledRun>& runs);
/// Peaks against the limit, and the level over time.
PageSection peaks_section(const PredictionPage& page);
PageSection reactions_section(const PredictionPage& page);
PageSection certainty_section(const Prediction& prediction);
PageSection grounds_section(const Prediction& prediction);

}  // namespace foretrace
