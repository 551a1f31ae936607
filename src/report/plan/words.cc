#include "report/plan/words.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/wording.h"

namespace foretrace {
namespace {

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

}  // namespace

Table plan_table(const PlanReport& report, const std::vector<PlanRow>& rows) {
  const bool has_counts =
      std::ranges::any_of(rows, [&](const PlanRow& row) { return row.gpus != rows.front().gpus; });
  Table table{.heading = {"step", "from", "to", "memory", "lost to"}, .rows = {}, .left = {}};
  if (has_counts) table.heading.emplace_back("GPUs");
  if (!report.currency.empty()) table.heading.push_back(report.currency + " per 1,000 steps");
  table.heading.emplace_back("layout");
  for (const PlanRow& row : rows) {
    std::vector<std::string> cells = {to_text(row.time), to_text(row.lower), to_text(row.upper),
                                      to_text(row.reserved), row.loss.empty() ? "-" : row.loss};
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

std::string plan_coverage(const PlanReport& report) {
  const auto covered = std::ranges::count_if(report.ranked, &PlanRow::is_covered);
  const auto all = static_cast<std::int64_t>(report.ranked.size());
  if (all == 0) return "";
  return fmt::format("{} cover {} of the {}{}",
                     report.trace.empty() ? "Measured steps" : "Changes with known outcomes",
                     covered, counted(all, "ranked layout"),
                     covered == all ? "." : "; the others are extrapolated.");
}

std::string plan_losses(const PlanReport& report) {
  std::vector<std::string> texts;
  for (const auto& [loss, count] : report.losses) {
    if (count > 0) texts.push_back(fmt::format("{} {}", grouped(count), loss));
  }
  if (texts.empty()) return "";
  return fmt::format("Layouts that are not shown, by what they lost to: {}.", joined(texts));
}

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
    lines.push_back(launch.row ? fmt::format("{}, {}: {}", launch.program,
                                             to_text(launch.row->time), joined(launch.flags, " "))
                               : launch.program + " has no flags for any of the layouts that fit");
  }
  return lines;
}

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

}  // namespace foretrace
