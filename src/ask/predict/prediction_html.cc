#include "ask/predict/prediction_html.h"

#include <vector>

#include "ask/predict/explain.h"
#include "ask/predict/sensitivities.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// Rows in each table of the critical path.
constexpr std::size_t kRowsOfPath = 20;

std::vector<Explained> path_of(const Graph& graph, const Timeline& timeline) {
  return explain(graph, timeline, kRowsOfPath);
}

}  // namespace

void show_page(const Graph& recorded, const Graph* changed, const Prediction& prediction,
               bool is_whole, const std::function<void(const PredictionPage&)>& take) {
  const Timeline now = simulate(recorded, {.reasons = true});
  Timeline then;
  PredictionPage page{.prediction = prediction,
                      .now = {recorded, now, path_of(recorded, now)},
                      .predicted = {},
                      .sensitivities = {}};
  if (changed != nullptr) {
    then = simulate(*changed, {.reasons = true});
    page.predicted.emplace(DrawnRun{*changed, then, path_of(*changed, then)});
  }
  if (is_whole && prediction.has_times)
    page.sensitivities =
        sensitivities_of(changed != nullptr ? *changed : recorded, prediction.predicted.step_time);
  take(page);
}

}  // namespace foretrace
