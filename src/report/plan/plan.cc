// The best layouts of a job, as text, Markdown, CSV and JSON.

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "foretrace/report.h"
#include "foretrace/version.h"
#include "report/plan/words.h"
#include "report/words/csv_text.h"
#include "report/words/json_parts.h"
#include "report/words/text_parts.h"
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

void write_plan_text(const PlanReport& report, std::ostream& out) {
  if (report.measured) {
    out << wrapped(shown(reproduction_text(*report.measured)), 0) << '\n';
    write_titled(out, "", measured_table(*report.measured));
    out << '\n';
  }
  out << wrapped(shown(plan_heading(report)), 0) << '\n';
  if (report.strategy) {
    out << wrapped(strategy_line(*report.strategy), 0) << '\n';
    write_titled(out, "", stages_table(*report.strategy));
  }
  write_titled(out, "", plan_table(report, report.ranked));
  out << '\n' << wrapped(plan_coverage(report), 0) << '\n';
  if (const std::string text = plan_losses(report); !text.empty()) out << wrapped(text, 0) << '\n';
  const std::vector<PlanRow> front = thinned_front(report.front);
  if (!report.strategy)
    write_titled(out, front_title(report, front.size()), plan_table(report, front));
  write_list(out, "how to run the fastest:", launch_lines(report));
  write_list(out, "assumed:", report.assumptions);
  write_list(out, "notes:", note_texts(report.measured ? report.measured->notes : report.notes));
}

void write_plan_markdown(const PlanReport& report, std::ostream& out) {
  if (report.measured) {
    out << markdown_text(reproduction_text(*report.measured)) << "\n\n";
    write_markdown_table(measured_table(*report.measured), out);
    out << '\n';
  }
  out << markdown_text(plan_heading(report)) << "\n\n";
  if (report.strategy) {
    out << markdown_text(strategy_line(*report.strategy)) << "\n\n";
    write_markdown_table(stages_table(*report.strategy), out);
    out << '\n';
  }
  write_markdown_table(plan_table(report, report.ranked), out);
  out << '\n' << plan_coverage(report) << '\n';
  if (!report.strategy) {
    const std::vector<PlanRow> front = thinned_front(report.front);
    out << '\n' << plan_losses(report) << "\n\n" << front_title(report, front.size()) << "\n\n";
    write_markdown_table(plan_table(report, front), out);
  }
  out << '\n';
  for (const std::string& line : launch_lines(report)) out << "- " << markdown_text(line) << '\n';
  for (const std::string& line : report.assumptions) out << "- " << markdown_text(line) << '\n';
}

void write_plan_csv(const PlanReport& report, std::ostream& out) {
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

}  // namespace foretrace
