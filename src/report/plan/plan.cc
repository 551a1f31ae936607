// The best layouts of a job: text, Markdown, CSV, JSON.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "base/wording.h"
#include "foretrace/report.h"
#include "foretrace/version.h"
#include "report/words/csv_text.h"
#include "report/words/json_text.h"
#include "report/words/text_parts.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

/// Without the batch, which all have.
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

Table table_of(const PlanReport& report, const std::vector<PlanRow>& rows) {
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
    cells.push_back((row.role.empty() ? "" : row.role + ": ") + short_layout(row));
    table.rows.push_back(std::move(cells));
  }
  table.left = {4, table.heading.size() - 1};
  return table;
}

std::string heading(const PlanReport& report) {
  return report.model + " on " + report.machine + ", " + grouped(report.global_batch) +
         " samples a step, up to " + to_text(report.limit) +
         " a device: " + grouped(static_cast<std::int64_t>(report.layouts)) + " layouts, " +
         grouped(static_cast<std::int64_t>(report.replayed)) +
         " of them replayed, the others bounded";
}

std::string losses(const PlanReport& report) {
  std::vector<std::string> texts;
  for (const auto& [loss, count] : report.losses) {
    if (count > 0) texts.push_back(grouped(static_cast<std::int64_t>(count)) + " to " + loss);
  }
  return texts.empty() ? "" : "Layouts that are not shown lost " + joined(texts) + ".";
}

/// The measured runs, before anything is ranked.
std::string trust_in(const GenerationReport& measured) {
  const auto judged = [](const GeneratedRow& row) { return !row.was_fitted; };
  const auto rows = std::ranges::count_if(measured.rows, judged);
  const auto reproduced = std::ranges::count_if(
      measured.rows, [&](const GeneratedRow& row) { return judged(row) && is_reproduced(row); });
  std::string text = std::to_string(reproduced) + " of " +
                     counted(static_cast<std::int64_t>(rows), "measured run") + " reproduced";
  if (!measured.score) return text;
  text += ", median error " + to_share(measured.score->median);
  if (measured.score->regret)
    text += "; of runs of one model on as many GPUs, the predicted best is " +
            to_share(*measured.score->regret) + " slower than the measured best";
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
  std::vector<std::string> lines = {"foretrace generate " + report.model + " --machine " +
                                    report.machine + " --layout " + report.ranked.front().layout};
  for (const PlanReport::Launch& launch : report.launches) {
    lines.push_back(launch.program + (launch.row ? ", " + to_text(launch.row->time) + ": " +
                                                       joined(launch.flags, " ")
                                                 : " has flags for none of the layouts that fit"));
  }
  return lines;
}

/// Layouts that need 5 % less memory than the one before, or cost less.
std::vector<PlanRow> thinned(const std::vector<PlanRow>& front) {
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
  return std::string("none is better in time, memory") +
         (report.currency.empty() ? "" : ", price") + " together (" + std::to_string(rows) +
         " of " + std::to_string(report.front.size()) + "; all in --format json):";
}

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
      {"machine", report.machine},
      {"global_batch", report.global_batch},
      {"limit_bytes", report.limit.count},
      {"currency", report.currency.empty() ? nlohmann::json() : nlohmann::json(report.currency)},
      {"layouts", report.layouts},
      {"replayed", report.replayed},
      {"ranked", rows_json(report.ranked)},
      {"front", rows_json(report.front)},
      {"not_shown_lost_to", lost},
      {"launches", launches},
      {"measured", report.measured ? to_json(*report.measured) : nlohmann::json()},
      {"assumptions", report.assumptions},
      {"notes", notes_json(report.notes)}};
}

void write_plan_text(const PlanReport& report, std::ostream& out) {
  if (report.measured) {
    out << wrapped(shown(trust_in(*report.measured)), 0) << '\n';
    write_titled(out, "", measured_table(*report.measured));
    out << '\n';
  }
  out << wrapped(shown(heading(report)), 0) << '\n';
  write_titled(out, "", table_of(report, report.ranked));
  if (const std::string text = losses(report); !text.empty())
    out << '\n' << wrapped(text, 0) << '\n';
  const std::vector<PlanRow> front = thinned(report.front);
  write_titled(out, front_title(report, front.size()), table_of(report, front));
  write_list(out, "the fastest, here and in programs:", launch_lines(report));
  write_list(out, "assumed:", report.assumptions);
  write_list(out, "notes:", note_texts(report.measured ? report.measured->notes : report.notes));
}

void write_plan_markdown(const PlanReport& report, std::ostream& out) {
  if (report.measured) {
    out << markdown_text(trust_in(*report.measured)) << "\n\n";
    write_markdown_table(measured_table(*report.measured), out);
    out << '\n';
  }
  out << markdown_text(heading(report)) << "\n\n";
  write_markdown_table(table_of(report, report.ranked), out);
  const std::vector<PlanRow> front = thinned(report.front);
  out << '\n' << losses(report) << "\n\n" << front_title(report, front.size()) << "\n\n";
  write_markdown_table(table_of(report, front), out);
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
