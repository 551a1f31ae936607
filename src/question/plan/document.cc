// The best layouts of a job, as text, Markdown, CSV and JSON.

#include "document/document.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/shown.h"
#include "base/wording.h"
#include "document/page/plot.h"
#include "document/words/facts.h"
#include "document/words/table.h"
#include "foretrace/answer/plan.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

// Sentences and tables of a plan, shared by its formats.

/// Returns the layout without the global batch, which is the same for all.
std::string short_layout(const PlanRow& row) {
  const std::string key = "global_batch=";
  std::string text = row.layout;
  const std::size_t begin = text.find(key);
  if (begin == std::string::npos) return text;
  const std::size_t end = text.find(',', begin);
  text.erase(begin, end == std::string::npos ? end : end + 1 - begin);
  if (text.ends_with(',')) text.pop_back();
  return text;
}

Table plan_table(const PlanReport& report, const std::vector<PlanRow>& rows) {
  const bool has_counts =
      std::ranges::any_of(rows, [&](const PlanRow& row) { return row.gpus != rows.front().gpus; });
  Table table{.heading = {"step", "from", "to", "memory", "lost to"}, .rows = {}, .left = {}};
  const bool has_rates =
      std::ranges::any_of(rows, [](const PlanRow& row) { return row.utilization > 0; });
  if (has_rates) table.heading.insert(table.heading.end(), {"MFU", "tokens/s"});
  if (has_counts) table.heading.emplace_back("GPUs");
  if (!report.currency.empty()) table.heading.push_back(report.currency + " per 1,000 steps");
  table.heading.emplace_back("layout");
  for (const PlanRow& row : rows) {
    std::vector<std::string> cells = {to_text(row.time), to_text(row.lower), to_text(row.upper),
                                      to_text(row.reserved), row.loss.empty() ? "-" : row.loss};
    if (has_rates) {
      cells.push_back(to_share(row.utilization));
      cells.push_back(grouped(std::llround(row.tokens_per_second)));
    }
    if (has_counts) cells.push_back(grouped(row.gpus));
    if (!report.currency.empty()) cells.push_back(row.cost ? to_fixed(*row.cost, 2) : "-");
    cells.push_back(row.role.empty() ? short_layout(row)
                                     : fmt::format("{}: {}", row.role, short_layout(row)));
    table.rows.push_back(std::move(cells));
  }
  table.left = {4, table.heading.size() - 1};
  return table;
}

std::string plan_heading(const PlanReport& report) {
  std::string text =
      fmt::format("{} on {}, {} {} a step, up to {} a device", report.model, report.machine,
                  grouped(report.global_batch),
                  report.trace.empty() ? "samples" : "recorded batches", to_text(report.limit));
  if (report.strategy) return text;
  text += ": " + counted(report.layouts, "layout");
  if (!report.trace.empty()) return text;
  return text + fmt::format(", {} of them replayed, the others ruled out by bounds",
                            grouped(report.replayed));
}

std::string strategy_line(const PlanStrategy& strategy) {
  return fmt::format("{}: {} a step by its own model, in micro-batches of {}, schedule {}{}",
                     strategy.name, to_text(strategy.time), counted(strategy.micro_batch, "sample"),
                     strategy.schedule, strategy.recomputes ? ", activations recomputed" : "");
}

Table stages_table(const PlanStrategy& strategy) {
  Table table{.heading = {"layers", "stages", "layers of each", "GPUs of each", "a micro-batch"},
              .rows = {}};
  for (const PlanStages& one : strategy.stages) {
    table.rows.push_back(
        {one.first == one.last ? one.first : fmt::format("{} to {}", one.first, one.last),
         std::to_string(one.stages), std::to_string(one.layers), grouped(one.gpus),
         to_text(one.time)});
  }
  return table;
}

/// Says how many ranked layouts are covered by measurements; empty if none is ranked.
std::string plan_coverage(const PlanReport& report) {
  const auto covered = std::ranges::count_if(report.ranked, &PlanRow::is_covered);
  const auto all = static_cast<std::int64_t>(report.ranked.size());
  if (all == 0) return "";
  return fmt::format("{} cover {} of the {}{}",
                     report.trace.empty() ? "Measured steps" : "Changes with known outcomes",
                     covered, counted(all, "ranked layout"),
                     covered == all ? "." : "; the others are extrapolated.");
}

/// Says how many of the fastest layouts cannot be told apart; empty if the fastest stands alone.
/// On measured groups of layouts, the predicted best was within this share of the measured one in
/// nine of ten.
std::string plan_ties(const PlanReport& report) {
  constexpr double kAlike = .03;
  const auto alike = std::ranges::count_if(report.ranked, [&](const PlanRow& row) {
    return row.role.empty() && row.fits &&
           row.time <= scaled(report.ranked.front().time, 1 + kAlike);
  });
  if (alike < 2) return "";
  return fmt::format("The first {} are the same within {}: their order is not reliable.", alike,
                     to_share(kAlike));
}

/// Says why the layouts that are not shown lost; empty if all are shown.
std::string plan_losses(const PlanReport& report) {
  std::vector<std::string> texts;
  for (const auto& [loss, count] : report.losses) {
    if (count > 0) texts.push_back(fmt::format("{} {}", grouped(count), loss));
  }
  if (texts.empty()) return "";
  return fmt::format("Layouts that are not shown, by what they lost to: {}.", joined(texts));
}

/// Says how many of the measured runs are reproduced.
std::string reproduction_text(const GenerationReport& measured) {
  const auto judged = [](const GeneratedRow& row) { return !row.was_fitted; };
  const auto rows = std::ranges::count_if(measured.rows, judged);
  const auto reproduced = std::ranges::count_if(
      measured.rows, [&](const GeneratedRow& row) { return judged(row) && is_reproduced(row); });
  std::string text = fmt::format("{} of {} reproduced", reproduced, counted(rows, "measured run"));
  if (!measured.score) return text;
  text += ", median error " + to_share(measured.score->median);
  if (measured.score->regret)
    text += fmt::format(
        "; of runs of one model on as many GPUs, the predicted best is {} slower "
        "than the measured best",
        to_share(*measured.score->regret));
  return text;
}

Table measured_table(const GenerationReport& measured) {
  Table table{.heading = {"row", "measured", "predicted", "from", "to", "reproduced", "run"},
              .rows = {},
              .left = {5, 6}};
  for (const GeneratedRow& row : measured.rows) {
    table.rows.push_back(
        {std::to_string(row.number), row.measured ? to_text(*row.measured) : "out of memory",
         row.runs_out ? "out of memory" : to_text(row.time), to_text(row.lower), to_text(row.upper),
         row.was_fitted       ? "fitted to"
         : is_reproduced(row) ? "yes"
                              : "no",
         row.name});
  }
  return table;
}

std::vector<std::string> launch_lines(const PlanReport& report) {
  std::vector<std::string> lines;
  if (!report.command.empty()) lines.push_back(report.command);
  for (const PlanReport::Launch& launch : report.launches) {
    lines.push_back(
        launch.row
            ? fmt::format("{}, {}: {}", launch.program, to_text(launch.row->time),
                          launch.flags.empty() ? launch.row->layout : joined(launch.flags, " "))
            : launch.program + " has no settings for any of the layouts that fit");
  }
  return lines;
}

/// Returns the layouts of the front that need at least 5 % less memory than the one before, or cost
/// less.
std::vector<PlanRow> thinned_front(const std::vector<PlanRow>& front) {
  constexpr double kLess = .95;
  std::vector<PlanRow> rows;
  for (const PlanRow& row : front) {
    if (rows.empty() || row.reserved <= scaled(rows.back().reserved, kLess) ||
        (row.cost && *row.cost < *rows.back().cost))
      rows.push_back(row);
  }
  return rows;
}

std::string front_title(const PlanReport& report, std::size_t rows) {
  return fmt::format(
      "no other layout is better in time and memory{} ({} of {}; all in --format json):",
      report.currency.empty() ? "" : " and price", rows, report.front.size());
}

Facts layout_facts(const PlanRow& row) {
  Facts facts;
  facts.fact("role", row.role)
      .fact("layout", row.layout)
      .fact("gpus", row.gpus)
      .fact("step_time_ns", row.time)
      .fact("lower_ns", row.lower)
      .fact("upper_ns", row.upper)
      .fact("bubble_ns", row.bubble)
      .fact("network_ns", row.network)
      .fact("kernels_ns", row.kernels)
      .fact("reserved_bytes", row.reserved)
      .fact("model_flops_utilization", row.utilization)
      .fact("tokens_per_second", row.tokens_per_second)
      .fact("price_of_1000_steps", row.cost)
      .fact("shapes", row.is_covered ? "covered" : "extrapolated")
      .fact("fits", row.fits)
      .fact("lost_to", row.loss);
  return facts;
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

PlotDot dot_of(const PlanRow& row, std::string name) {
  return {.x = static_cast<double>(row.reserved.count),
          .y = static_cast<double>(row.time.count()),
          .name = std::move(name),
          .tooltip = fmt::format("{}: {} a step, {}", short_layout(row), to_text(row.time),
                                 to_text(row.reserved)),
          .colour = row.role.empty() ? 0U : 1U};
}

/// Plots the layouts of the front, with names where there is room, and yours. A line leads along
/// those that no other beats in time and memory.
std::string front_plot(const PlanReport& report, const std::vector<PlanRow>& named) {
  std::vector<PlotDot> dots;
  for (const PlanRow& row : report.ranked) {
    if (!row.role.empty() && row.fits) dots.push_back(dot_of(row, row.role));
  }
  for (const PlanRow& row : named) dots.push_back(dot_of(row, short_layout(row)));
  std::vector<std::pair<double, double>> points;
  for (const PlanRow& row : report.front) {
    const PlotDot dot = dot_of(row, "");
    points.emplace_back(dot.x, dot.y);
    dots.push_back(dot);
  }
  std::ranges::sort(points);
  PlotLine line{.name = "no other layout is faster with as little memory"};
  for (const auto& point : points) {
    if (line.points.empty() || point.second < line.points.back().second)
      line.points.push_back(point);
  }
  return html_plot(
      {.x = {.title = "reserved memory of the fullest device",
             .label = [](double bytes) { return to_text(Bytes{std::llround(bytes)}); }},
       .y = {.title = "step", .label = [](double time) { return to_text(from_nanoseconds(time)); }},
       .described = "Time of a step over memory of a device; the table below has the same layouts",
       .lines = {std::move(line)},
       .dots = std::move(dots)});
}

/// Says what the fastest layout does; empty if none fits.
std::string fastest_of(const PlanReport& report) {
  if (report.ranked.empty() || !report.ranked.front().fits) return {};
  const PlanRow& row = report.ranked.front();
  std::string text =
      fmt::format("fastest: {}: {} a step, between {} and {}, {} reserved", row.layout,
                  to_text(row.time), to_text(row.lower), to_text(row.upper), to_text(row.reserved));
  if (row.utilization > 0)
    text += fmt::format(", MFU {}, {} tokens/s", to_share(row.utilization),
                        grouped(std::llround(row.tokens_per_second)));
  if (row.cost)
    text += fmt::format(", {} {} per 1,000 steps", to_fixed(*row.cost, 2), report.currency);
  return text;
}

}  // namespace

nlohmann::json to_json(const PlanReport& report) {
  nlohmann::json launches = nlohmann::json::array(), lost = nlohmann::json::object();
  for (const PlanReport::Launch& launch : report.launches)
    launches.push_back(
        {{"program", launch.program},
         {"layout", launch.row ? layout_facts(*launch.row).json() : nlohmann::json()},
         {"flags", launch.flags},
         {"file", launch.file}});
  for (const auto& [loss, count] : report.losses) lost[loss] = count;
  return {{"schema", "foretrace.plan/1"},
          {"tool", {{"version", kVersion}}},
          {"model", report.model},
          {"trace", unless_default(report.trace)},
          {"machine", report.machine},
          {"global_batch", report.global_batch},
          {"limit_bytes", report.limit.count},
          {"currency", unless_default(report.currency)},
          {"strategy", strategy_json(report.strategy)},
          {"layouts", report.layouts},
          {"replayed", report.replayed},
          {"ranked", rows_json(report.ranked, layout_facts)},
          {"front", rows_json(report.front, layout_facts)},
          {"not_shown_lost_to", lost},
          {"command", report.command},
          {"launches", launches},
          {"measured", report.measured ? to_json(*report.measured) : nlohmann::json()},
          {"training", training_json(report.training)},
          {"assumptions", report.assumptions},
          {"notes", notes_json(report.notes)}};
}

void write_csv(const PlanReport& report, std::ostream& out) {
  out << "list," << layout_facts(PlanRow{}).heading();
  for (const PlanRow& row : report.ranked) out << "ranked," << layout_facts(row).line();
  for (const PlanRow& row : report.front) out << "front," << layout_facts(row).line();
}

Document document_of(const PlanReport& report) {
  using enum Document::Heading;
  const std::string fastest = fastest_of(report);
  Document document("Plan", fastest.empty() ? plan_heading(report) : fastest);
  if (report.measured) {
    document.say(reproduction_text(*report.measured));
    document.titled("", measured_table(*report.measured)).section("");
  }
  document.say(plan_heading(report));
  document.sum_up(fastest);
  if (report.strategy) {
    document.say(strategy_line(*report.strategy));
    document.section("Stages", not_in_text).table(stages_table(*report.strategy), "", "  ");
  }
  const std::vector<PlanRow> front = thinned_front(report.front);
  document.section("Time over memory", not_in_text).draw({[&report, front] {
    return Picture::Made{front_plot(report, front)};
  }});
  document.section("Layouts", not_in_text).table(plan_table(report, report.ranked), "", "  ");
  document.section("").say(plan_ties(report));
  document.say(plan_coverage(report)).say(plan_losses(report));
  if (!report.strategy)
    document.titled(front_title(report, front.size()), plan_table(report, front));
  if (report.training) {
    document.section("The whole training, with the fastest layout:");
    for (const auto& [word, text] : sentences_of(*report.training)) document.say(word, text);
  }
  document.list("how to run the fastest:", launch_lines(report));
  std::vector<std::string> assumed = report.assumptions;
  if (report.training) std::ranges::copy(report.training->assumptions, std::back_inserter(assumed));
  document.list("assumed:", assumed);
  return document.notes(report.measured ? report.measured->notes : report.notes, "notes:");
}

}  // namespace foretrace
