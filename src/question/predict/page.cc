#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "analysis/memory/layout.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/answer/trust.h"
#include "foretrace/timeline.h"
#include "question/predict/sections.h"
#include "question/predict/timeline_json.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

/// These limits keep the page of any trace below 6 MB.
constexpr std::size_t kMaxTasks = 400'000;
constexpr std::size_t kMaxBytesOfTimelines = 5'200'000;
constexpr std::size_t kMaxLevels = 6'000;  ///< Most points of all memory curves together.
constexpr std::size_t kFewestLevels = 100;

struct DrawnRuns {
  std::vector<Drawing> drawings;
  std::string json;
};

/// Runs that are drawn above each other, each with its title.
using NamedRuns = std::vector<std::pair<std::string, const DrawnRun*>>;

NamedRuns named_runs(const PredictionPage& page) {
  NamedRuns runs = {{"now", &page.now}};
  if (page.predicted) runs.emplace_back("predicted", &*page.predicted);
  return runs;
}

std::vector<TitledRun> titled(const NamedRuns& runs, const std::vector<Drawing>& drawings) {
  std::vector<TitledRun> all;
  for (std::size_t i = 0; i < runs.size(); ++i)
    all.push_back({runs[i].first, *runs[i].second, drawings[i]});
  return all;
}

/// Draws the runs with as many tasks as fit, at most `most`.
DrawnRuns drawn_runs(const NamedRuns& runs, std::size_t most) {
  while (true) {
    DrawnRuns drawn;
    for (const auto& [title, run] : runs)
      drawn.drawings.push_back(drawing_of(*run, most / runs.size()));
    drawn.json = script_json(timeline_json(titled(runs, drawn.drawings)));
    std::size_t shown = 0;
    for (const Drawing& drawing : drawn.drawings) shown += drawing.tasks_shown;
    if (drawn.json.size() <= kMaxBytesOfTimelines || shown == 0) return drawn;
    const double room =
        static_cast<double>(kMaxBytesOfTimelines) / static_cast<double>(drawn.json.size());
    most = static_cast<std::size_t>(0.95 * room * static_cast<double>(std::min(most, shown)));
  }
}

/// Returns the memory curve of each device as points [time, bytes], thinned.
nlohmann::json levels_json(const Timeline& timeline) {
  nlohmann::json all = nlohmann::json::array();
  const std::size_t curves = std::max<std::size_t>(2 * timeline.memory.size(), 1);
  for (const MemoryCurve& curve : timeline.memory) {
    nlohmann::json points = nlohmann::json::array();
    for (const MemoryCurve::Point& point :
         thinned(curve.points, std::max(kMaxLevels / curves, kFewestLevels)))
      points.push_back({point.time.count(), point.allocated.count});
    all.push_back({{"device", curve.device}, {"points", std::move(points)}});
  }
  return all;
}

nlohmann::json memory_json(const PredictionPage& page) {
  nlohmann::json runs =
      nlohmann::json::array({{{"title", "now"}, {"curves", levels_json(page.now.timeline)}}});
  if (page.predicted) {
    runs.push_back({{"title", "predicted"}, {"curves", levels_json(page.predicted->timeline)}});
  }
  return {{"limit", page.prediction.memory_limit.count},
          {"has_times", page.prediction.has_times},
          {"runs", std::move(runs)}};
}

std::string lead_html(const PredictionPage& page) {
  const VerdictLines lines = verdict(page.prediction);
  std::string html;
  if (!lines.trust.empty())
    html += fmt::format("<p class=\"verdict\">Trust is {}</p>\n", html_text(lines.trust));
  html += fmt::format("<p class=\"verdict\">{}</p>\n<p>{}</p>\n", html_text(lines.how_much),
                      html_text(lines.how_sure));
  if (!lines.steps.empty()) html += fmt::format("<p>Steps: {}</p>\n", html_text(lines.steps));
  if (!lines.unprofiled.empty())
    html += fmt::format("<p>Unprofiled: {}</p>\n", html_text(lines.unprofiled));
  if (!lines.fits.empty()) html += fmt::format("<p>Does it fit? {}</p>\n", html_text(lines.fits));
  if (!page.prediction.inputs.empty()) {
    const std::size_t others = page.prediction.inputs.size() - 1;
    html += fmt::format("<p class=\"quiet\">From {}{}.</p>\n",
                        html_text(page.prediction.inputs.front().path),
                        others > 0 ? " and " + counted(others, "other") : "");
  }
  const std::int32_t rank =
      page.now.graph.lane_count() > 0 ? page.now.graph.lane(LaneId{0}).rank : 0;
  if (page.prediction.inputs.size() > 1 || rank > 0)
    html += fmt::format("<p class=\"quiet\">The timelines are those of rank {}.</p>\n", rank);
  return html;
}

std::vector<PageSection> sections_of(const PredictionPage& page, const DrawnRuns& drawn) {
  std::vector<TitledRun> runs = titled(named_runs(page), drawn.drawings);
  if (!page.prediction.has_times) runs.clear();
  std::vector<PageSection> sections = {time_section(page),
                                       ranks_section(page),
                                       steps_section(page),
                                       timeline_section(runs),
                                       path_section(runs),
                                       schedule_section(runs),
                                       peaks_section(page),
                                       sensitivities_section(page),
                                       certainty_section(page.prediction),
                                       evidence_section(page.prediction)};
  std::erase_if(sections, [](const PageSection& one) { return one.html.empty(); });
  return sections;
}

std::string heading_of(const Prediction& prediction) {
  return (is_what_if(prediction) ? "What if: " : "") + verdict(prediction).what;
}

}  // namespace

nlohmann::json prediction_parts(const PredictionPage& page, std::size_t most_tasks) {
  const DrawnRuns drawn = drawn_runs(named_runs(page), most_tasks);
  return {{"heading", heading_of(page.prediction)},
          {"lead", lead_html(page)},
          {"sections", sections_json(sections_of(page, drawn))},
          {"timelines", drawn.json},
          {"memory", script_json(memory_json(page))}};
}

nlohmann::json recordings_parts(const DrawnRun& a, const DrawnRun& b, std::size_t most_tasks) {
  const NamedRuns runs = {{"A", &a}, {"B", &b}};
  const DrawnRuns drawn = drawn_runs(runs, most_tasks);
  return {{"sections", sections_json({timeline_section(titled(runs, drawn.drawings))})},
          {"timelines", drawn.json}};
}

void write_prediction_page(const PredictionPage& page, std::ostream& out) {
  DrawnRuns drawn = drawn_runs(named_runs(page), kMaxTasks);
  Page html{.title = "Foretrace: " + verdict(page.prediction).what,
            .heading = heading_of(page.prediction),
            .lead = lead_html(page),
            .sections = sections_of(page, drawn),
            .styles = {"page/prediction.css"},
            .data = {},
            .scripts = {}};
  const auto has = [&](std::string_view id) {
    return std::ranges::find(html.sections, id, &PageSection::id) != html.sections.end();
  };
  if (has("timelines")) {
    html.data.push_back({"timeline-data", std::move(drawn.json)});
    html.scripts = {"page/timeline_data.js", "page/timeline.js"};
  }
  if (has("memory")) {
    html.data.push_back({"memory-data", script_json(memory_json(page))});
    html.scripts.push_back("page/levels.js");
    html.has_charts = true;
  }
  if (!html.scripts.empty()) html.scripts.push_back("page/prediction.js");
  write_page(html, out);
}

}  // namespace foretrace
