#include "ask/predict/prediction_html.h"

#include <ostream>
#include <utility>
#include <vector>

#include "ask/predict/explain.h"
#include "ask/predict/sensitivities.h"
#include "base/files/new_file.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/report.h"
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
               const std::function<void(const PredictionPage&)>& take) {
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
  take(page);
}

void write_prediction_html(const Graph& recorded, const Graph* changed,
                           const Prediction& prediction, const std::string& path) {
  std::vector<Sensitivity> sensitivities;
  if (prediction.has_times)
    sensitivities =
        sensitivities_of(changed != nullptr ? *changed : recorded, prediction.predicted.step_time);
  show_page(recorded, changed, prediction, [&](const PredictionPage& page) {
    PredictionPage whole{page.prediction, page.now, page.predicted, std::move(sensitivities)};
    write_new_file(path, [&](std::ostream& out) { write_prediction_page(whole, out); });
  });
}

}  // namespace foretrace
