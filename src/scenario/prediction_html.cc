#include "scenario/prediction_html.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "foretrace/error.h"
#include "foretrace/prediction_page.h"
#include "foretrace/simulate.h"
#include "scenario/explain.h"
#include "scenario/reactions.h"

namespace foretrace {
namespace {

/// Rows of each table of the critical path.
constexpr std::size_t kRowsOfPath = 20;

std::vector<Explained> path_of(const Graph& graph, const Timeline& timeline) {
  return explain(graph, timeline, kRowsOfPath);
}

/// Half a page is of no use.
void write_file(const PredictionPage& page, const std::string& path) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  const bool opened = file.is_open();
  if (opened) write_prediction_page(page, file);
  file.close();
  if (file) return;
  const std::string why = std::strerror(errno);
  std::error_code ignored;
  if (opened && std::filesystem::is_regular_file(path, ignored))
    std::filesystem::remove(path, ignored);
  throw Error("cannot write '" + path + "': " + why);
}

}  // namespace

void write_prediction_html(const Graph& recorded, const Graph* changed,
                           const Prediction& prediction, const std::string& path) {
  const Timeline now = simulate(recorded, {.reasons = true});
  Timeline then;
  PredictionPage page{.prediction = prediction,
                      .now = {recorded, now, path_of(recorded, now)},
                      .predicted = {},
                      .reactions = {}};
  if (changed != nullptr) {
    then = simulate(*changed, {.reasons = true});
    page.predicted.emplace(DrawnRun{*changed, then, path_of(*changed, then)});
  }
  if (prediction.has_times) {
    page.reactions =
        reactions_of(changed != nullptr ? *changed : recorded, prediction.predicted.step_time);
  }
  write_file(page, path);
}

}  // namespace foretrace
