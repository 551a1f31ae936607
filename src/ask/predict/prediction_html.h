#pragma once

// Makes the HTML page of an answer: the recorded and the changed job are replayed once more, with
// the reasons for every start, and the predicted job is examined for what its step time depends on.

#include <functional>

#include "foretrace/answer/prediction_page.h"
#include "foretrace/graph.h"

namespace foretrace {

/// Calls `take` with the page; `is_whole`: with its sensitivities, which take many replays.
/// `changed` is the graph of the prediction; nullptr without a what-if.
void show_page(const Graph& recorded, const Graph* changed, const Prediction& prediction,
               bool is_whole, const std::function<void(const PredictionPage&)>& take);

}  // namespace foretrace
