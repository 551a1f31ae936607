// A pipeline schedule, as text, JSON and a page.

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_text.h"
#include "base/wording.h"
#include "foretrace/report.h"
#include "foretrace/version.h"
#include "report/page/page_charts.h"
#include "report/page/page_shell.h"
#include "report/pipeline/drawing.h"
#include "report/words/text_parts.h"

namespace foretrace {
namespace {

std::string verdict(const PipelineReport& report) {
  return fmt::format("makespan {}, bubble rate {}", to_text(report.makespan),
                     to_fixed(report.bubble_rate, 4));
}

nlohmann::json rank_json(const PipelineRank& rank) {
  nlohmann::json actions = nlohmann::json::array();
  const bool both_ways = std::any_of(rank.actions.begin(), rank.actions.end(),
                                     [](const PipelineAction& one) { return one.pipeline > 0; });
  for (const PipelineAction& action : rank.actions) {
    nlohmann::json one = {{"action", action.name},
                          {"start_ns", action.start.count()},
                          {"finish_ns", action.finish.count()}};
    if (rank.versions > 1) one["version"] = action.version;
    if (both_ways) one["pipeline"] = action.pipeline;
    actions.push_back(std::move(one));
  }
  return {{"busy_ns", rank.busy.count()},
          {"span_ns", rank.span.count()},
          {"peak_in_flight", rank.peak_in_flight},
          {"versions", rank.versions},
          {"peak_activation_bytes", rank.peak_activations.count},
          {"parameter_bytes", rank.parameters.count},
          {"actions", std::move(actions)}};
}

/// Returns the class of the style sheet that colours an action.
std::string colour_of(char letter) {
  switch (letter) {
    case 'F':
      return "part-compute";
    case 'W':
      return "part-host";
    case 'U':
      return "part-copy";
    default:
      return "part-communication";
  }
}

std::string bars(const PipelineReport& report) {
  const double length = std::max(1.0, static_cast<double>(report.makespan.count()));
  std::vector<BarRow> rows;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    BarRow& row = rows.emplace_back();
    row.name = "rank " + std::to_string(i);
    for (const PipelineAction& action : report.ranks[i].actions) {
      const Nanoseconds time = action.finish - action.start;
      if (time == 0ns) continue;
      row.parts.push_back({.from = static_cast<double>(action.start.count()) / length,
                           .width = static_cast<double>(time.count()) / length,
                           .label = action.name,
                           .letter = std::to_string(action.micro_batch),
                           .colour = colour_of(action.letter),
                           .tooltip = fmt::format("{}: {} to {}", action.name,
                                                  to_text(action.start), to_text(action.finish))});
    }
    row.value = to_text(report.ranks[i].span);
  }
  return html_bars("The passes of each rank over time; the table has their sums", rows) +
         html_legend({{"part-compute", "forward"},
                      {"part-communication", "backward, input gradient"},
                      {"part-host", "weight gradient"},
                      {"part-copy", "update"}});
}

}  // namespace

void write_pipeline_text(const PipelineReport& report, std::ostream& out) {
  out << pipeline_heading(report) << "\n" << verdict(report) << "\n\n" << draw_pipeline(report);
  out << "\n" << pipeline_legend(report) << "\n\n";
  write_aligned(pipeline_table(report), out);
  write_list(out, "assumed:", report.assumptions);
}

nlohmann::json to_json(const PipelineReport& report) {
  nlohmann::json ranks = nlohmann::json::array(), peaks = nlohmann::json::array();
  for (const PipelineRank& rank : report.ranks) {
    ranks.push_back(rank_json(rank));
    peaks.push_back(rank.peak_in_flight);
  }
  return {{"schema", "foretrace.pipeline/1"},
          {"tool", {{"version", kVersion}}},
          {"schedule", report.schedule},
          {"settings", parse_json<nlohmann::json>(report.settings_json)},
          {"stages", report.stages},
          {"chunks", report.chunks},
          {"micro_batches", report.micro_batches},
          {"makespan_ns", report.makespan.count()},
          {"bubble_rate", report.bubble_rate},
          {"peak_in_flight", std::move(peaks)},
          {"ranks", std::move(ranks)},
          {"assumptions", report.assumptions}};
}

void write_pipeline_page(const PipelineReport& report, std::ostream& out) {
  Page page;
  page.title = page.heading = pipeline_heading(report);
  page.lead = fmt::format("<p>{}</p>\n", html_text(verdict(report)));
  page.styles = {"page/prediction.css"};
  page.sections.push_back({"passes", "Passes", bars(report)});
  page.sections.push_back({"ranks", "Ranks", html_table("Ranks", pipeline_table(report))});
  if (!report.assumptions.empty())
    page.sections.push_back({"assumed", "Assumed", html_items(report.assumptions)});
  write_page(page, out);
}

}  // namespace foretrace
