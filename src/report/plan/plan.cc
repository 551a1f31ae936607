// The best layouts of a job, as text, Markdown, CSV and JSON.

#include "foretrace/answer/plan.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "document/document.h"
#include "document/page/line_plot.h"
#include "document/words/csv_text.h"
#include "foretrace/version.h"
#include "report/plan/words.h"
#include "report/words/json_parts.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

nlohmann::json rows_json(const std::vector<PlanRow>& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (const PlanRow& row : rows) {
    all.push_back({{"role", row.role},
                   {"layout", row.layout},
                   {"gpus", row.gpus},
                   {"step_time_ns", row.time.count()},
                   {"lower_ns", row.lower.count()},
                   {"upper_ns", row.upper.count()},
                   {"bubble_ns", row.bubble.count()},
                   {"network_ns", row.network.count()},
                   {"kernels_ns", row.kernels.count()},
                   {"reserved_bytes", row.reserved.count},
                   {"price_of_1000_steps", number_json(row.cost)},
                   {"shapes", row.is_covered ? "covered" : "extrapolated"},
                   {"fits", row.fits},
                   {"lost_to", row.loss}});
  }
  return all;
}

nlohmann::json strategy_json(const std::optional<PlanStrategy>& strategy) {
  if (!strategy) return {};
  nlohmann::json stages = nlohmann::json::array();
  for (const PlanStages& one : strategy->stages)
    stages.push_back({{"first_layer", one.first},
                      {"last_layer", one.last},
                      {"stages", one.stages},
                      {"layers_of_each", one.layers},
                      {"gpus_of_each", one.gpus},
                      {"micro_batch_ns", one.time.count()}});
  return {{"name", strategy->name},
          {"step_time_ns", strategy->time.count()},
          {"micro_batch", strategy->micro_batch},
          {"schedule", strategy->schedule},
          {"recomputes", strategy->recomputes},
          {"stages", stages},
          {"is_ranked", strategy->is_ranked}};
}

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

std::string fastest_of(const PlanReport& report) {
  if (report.ranked.empty()) return {};
  const PlanRow& row = report.ranked.front();
  return fmt::format("fastest: {}: {} a step, between {} and {}, {} reserved", row.layout,
                     to_text(row.time), to_text(row.lower), to_text(row.upper),
                     to_text(row.reserved));
}

}  // namespace

nlohmann::json to_json(const PlanReport& report) {
  nlohmann::json launches = nlohmann::json::array(), lost = nlohmann::json::object();
  for (const PlanReport::Launch& launch : report.launches)
    launches.push_back({{"program", launch.program},
                        {"layout", launch.row ? rows_json({*launch.row})[0] : nlohmann::json()},
                        {"flags", launch.flags}});
  for (const auto& [loss, count] : report.losses) lost[loss] = count;
  return {
      {"schema", "foretrace.plan/1"},
      {"tool", {{"version", kVersion}}},
      {"model", report.model},
      {"trace", report.trace.empty() ? nlohmann::json() : nlohmann::json(report.trace)},
      {"machine", report.machine},
      {"global_batch", report.global_batch},
      {"limit_bytes", report.limit.count},
      {"currency", report.currency.empty() ? nlohmann::json() : nlohmann::json(report.currency)},
      {"strategy", strategy_json(report.strategy)},
      {"layouts", report.layouts},
      {"replayed", report.replayed},
      {"ranked", rows_json(report.ranked)},
      {"front", rows_json(report.front)},
      {"not_shown_lost_to", lost},
      {"command", report.command},
      {"launches", launches},
      {"measured", report.measured ? to_json(*report.measured) : nlohmann::json()},
      {"assumptions", report.assumptions},
      {"notes", notes_json(report.notes)}};
}

void write_csv(const PlanReport& report, std::ostream& out) {
  out << "list,role,layout,gpus,step_time_ns,lower_ns,upper_ns,bubble_ns,network_ns,kernels_ns,"
         "reserved_bytes,price_of_1000_steps,fits,lost_to\n";
  const auto write = [&](const char* list, const std::vector<PlanRow>& rows) {
    for (const PlanRow& row : rows) {
      out << list << ',' << csv_text(row.role) << ',' << csv_text(row.layout) << ',' << row.gpus
          << ',' << row.time.count() << ',' << row.lower.count() << ',' << row.upper.count() << ','
          << row.bubble.count() << ',' << row.network.count() << ',' << row.kernels.count() << ','
          << row.reserved.count << ',' << (row.cost ? to_text(*row.cost) : "") << ',' << row.fits
          << ',' << row.loss << '\n';
    }
  };
  write("ranked", report.ranked);
  write("front", report.front);
}

Document document_of(const PlanReport& report) {
  using enum Document::Heading;
  Document document("Plan", plan_heading(report));
  if (report.measured) {
    document.say(reproduction_text(*report.measured));
    document.titled("", measured_table(*report.measured)).section("");
  }
  document.say(plan_heading(report));
  document.sum_up(fastest_of(report));
  if (report.strategy) {
    document.say(strategy_line(*report.strategy));
    document.section("Stages", not_in_text).table(stages_table(*report.strategy), "", "  ");
  }
  document.section("Layouts", not_in_text).table(plan_table(report, report.ranked), "", "  ");
  document.section("").say(plan_coverage(report)).say(plan_losses(report));
  const std::vector<PlanRow> front = thinned_front(report.front);
  document.section("Time over memory", not_in_text).draw({[&] {
    return Picture::Made{front_plot(report)};
  }});
  if (!report.strategy)
    document.titled(front_title(report, front.size()), plan_table(report, front));
  document.list("how to run the fastest:", launch_lines(report));
  document.list("assumed:", report.assumptions);
  return document.notes(report.measured ? report.measured->notes : report.notes, "notes:");
}

}  // namespace foretrace
