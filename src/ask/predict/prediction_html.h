#pragma once

// Makes the HTML page of an answer: the recorded and the changed job are replayed once more, with
// the reasons for every start, and the predicted job is examined for what its step time depends on.

#include <functional>
#include <string>

#include "foretrace/answer/prediction_page.h"
#include "foretrace/graph.h"

namespace foretrace {

/// Calls `take` with the page without its sensitivities, which take many replays. `changed` is the
/// graph of the prediction; nullptr without a what-if.
void show_page(const Graph& recorded, const Graph* changed, const Prediction& prediction,
               const std::function<void(const PredictionPage&)>& take);
/// Writes the whole page. Throws Error if the file cannot be written.
void write_prediction_html(const Graph& recorded, const Graph* changed,
                           const Prediction& prediction, const std::string& path);

}  // namespace foretrace
