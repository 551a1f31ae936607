// A plan as a page: the ranking, and a plot of time over memory.

#include <algorithm>
#include <fmt/core.h>
#include <ostream>

#include "base/wording.h"
#include "foretrace/report.h"
#include "report/page/line_plot.h"
#include "report/page/page_shell.h"
#include "report/plan/words.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

/// Plots the layouts of the front: no other is faster with as much memory or less.
std::string front_plot(const PlanReport& report) {
  std::vector<PlotLine> lines;
  for (const PlanRow& row : report.front) {
    if (row.reserved <= Bytes{} || row.time <= Nanoseconds{0}) continue;
    if (lines.empty()) lines.push_back({.name = "layouts"});
    lines.front().points.emplace_back(static_cast<double>(row.reserved.count),
                                      static_cast<double>(row.time.count()));
  }
  if (lines.empty()) return "";
  std::ranges::sort(lines.front().points);
  return line_plot(
      lines,
      {.x_step = 2,
       .x_label = [](double bytes) { return to_text(Bytes{static_cast<std::int64_t>(bytes)}); },
       .y_label = [](double time) { return to_text(Nanoseconds(static_cast<std::int64_t>(time))); },
       .described = "Time of a step over memory of a device"});
}

}  // namespace

void write_plan_page(const PlanReport& report, std::ostream& out) {
  Page page;
  page.title = "Plan";
  page.heading = plan_heading(report);
  page.lead = html_items(launch_lines(report));
  if (report.measured)
    page.sections.push_back(
        {"measured", "Measured runs",
         fmt::format("<p>{}</p>\n{}", html_text(reproduction_text(*report.measured)),
                     html_table("Measured runs", measured_table(*report.measured)))});
  if (report.strategy)
    page.sections.push_back(
        {"strategy", "Strategy",
         fmt::format("<p>{}</p>\n{}", html_text(strategy_line(*report.strategy)),
                     html_table("Stages", stages_table(*report.strategy)))});
  page.sections.push_back(
      {"ranked", "Layouts",
       fmt::format("{}<p>{}</p>\n", html_table("Layouts", plan_table(report, report.ranked)),
                   html_text(fmt::format("{} {}", plan_coverage(report), plan_losses(report))))});
  if (const std::string plot = front_plot(report); !plot.empty()) {
    const std::vector<PlanRow> front = thinned_front(report.front);
    page.sections.push_back(
        {"front", "Time over memory",
         fmt::format("{}<p>{}</p>\n{}", plot, html_text(front_title(report, front.size())),
                     html_table("Front", plan_table(report, front)))});
  }
  page.sections.push_back({"assumed", "Assumed", html_items(report.assumptions)});
  if (const auto notes = note_texts(report.notes); !notes.empty())
    page.sections.push_back({"notes", "Notes", html_items(notes)});
  write_page(page, out);
}

}  // namespace foretrace
