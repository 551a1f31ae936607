// A job on more and more GPUs, as text, JSON, CSV, and a page with a plot.

#include "document/document.h"

#include <cmath>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/numbers/scaling.h"
#include "base/shown.h"
#include "base/wording.h"
#include "document/page/plot.h"
#include "document/words/facts.h"
#include "foretrace/answer/scale.h"
#include "foretrace/answer/trust.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"

namespace foretrace {
namespace {

bool has_several_schemes(const ScaleReport& report) {
  for (const ScalePoint& point : report.points) {
    if (point.scheme != report.points.front().scheme) return true;
  }
  return false;
}

bool has_rate(const ScaleReport& report) {
  for (const ScalePoint& point : report.points) {
    if (point.rate) return true;
  }
  return false;
}

std::string heading(const ScaleReport& report) {
  std::string text = fmt::format(
      "{} a step on {}", to_text(report.recorded),
      report.gpus_per_worker == 1 ? "one GPU" : std::to_string(report.gpus_per_worker) + " GPUs");
  for (const std::string& change : report.changes) text += ", " + change;
  if (!report.machine.empty()) text += "; on more of " + report.machine;
  return text;
}

/// Shows the whole training with each count that has an answer, if one is asked for.
void show_training(const ScaleReport& report, Document& document) {
  Table table{.heading = {"GPUs"}, .rows = {}};
  double steps = 0;
  for (const ScalePoint& point : report.points) {
    if (!point.training) continue;
    const TrainingRun& run = *point.training;
    const bool is_first = table.rows.empty();
    std::vector<std::string> cells = {std::to_string(point.gpus)};
    const auto add = [&](const char* name, std::string text) {
      if (is_first) table.heading.emplace_back(name);
      cells.push_back(std::move(text));
    };
    const auto add_range = [&](const char* name, const RangedNumber& number, const auto& text) {
      add(name, text(number.point)), add("from", text(number.lower)), add("to", text(number.upper));
    };
    add_range("training", run.seconds, duration_text);
    if (run.price)
      add_range("price", *run.price, [&](double price) { return price_text(run, price); });
    if (run.energy) add_range("energy", *run.energy, energy_text);
    if (run.failures) add("checkpoint every", duration_text(run.failures->checkpoint_every));
    if (run.failures) add("trains", to_share(run.failures->goodput));
    add("scheme", point.scheme);
    table.rows.push_back(std::move(cells)), steps = run.steps;
  }
  if (table.rows.empty()) return;
  table.left = {table.heading.size() - 1};
  document.titled(fmt::format("the whole training, as many samples as {} steps on one worker:",
                              grouped(std::llround(steps))),
                  std::move(table));
}

Table table_of(const ScaleReport& report) {
  const bool several = has_several_schemes(report), rates = has_rate(report);
  Table table{.heading = {"GPUs", "step", "from", "to", "throughput", "efficiency", "communication",
                          "exposed", "memory"},
              .rows = {},
              .left = {}};
  if (rates) table.heading.emplace_back("samples/s");
  if (several) table.heading.emplace_back("scheme"), table.left = {table.heading.size() - 1};
  for (const ScalePoint& point : report.points) {
    std::vector<std::string> cells = {std::to_string(point.gpus)};
    if (point.refused.empty()) {
      cells.insert(cells.end(), {to_text(point.step_time), to_text(point.lower),
                                 to_text(point.upper), to_fixed(point.throughput, 2) + "x",
                                 to_share(point.efficiency), to_text(point.transfer),
                                 to_text(point.exposed), point.peak ? to_text(*point.peak) : "-"});
      if (rates) cells.push_back(point.rate ? to_fixed(*point.rate, 1) : "-");
    } else {
      cells.resize(rates ? 10 : 9, "-");
    }
    if (several) cells.push_back(point.scheme);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Returns a line for each reason of a refusal, with all the GPU counts that it applies to.
std::vector<std::string> refusals_of(const ScaleReport& report) {
  std::map<std::string, std::string> counts;
  for (const ScalePoint& point : report.points) {
    if (point.refused.empty()) continue;
    std::string& text = counts[point.refused];
    text += (text.empty() ? "" : ", ") + std::to_string(point.gpus);
  }
  std::vector<std::string> lines;
  for (const auto& [why, gpus] : counts)
    lines.push_back(fmt::format("{} {}: {}", gpus, gpus == "1" ? "GPU" : "GPUs", shown(why)));
  return lines;
}

/// Names the scheme and count with the highest throughput.
std::string best_of(const ScaleReport& report) {
  const ScalePoint* best = nullptr;
  for (const ScalePoint& point : report.points) {
    if (point.refused.empty() && (!best || point.throughput > best->throughput)) best = &point;
  }
  if (!best) return {};
  return fmt::format("most on {} with {}: {}x the throughput, {} a step, between {} and {}",
                     counted(best->gpus, "GPU"), best->scheme, to_fixed(best->throughput, 2),
                     to_text(best->step_time), to_text(best->lower), to_text(best->upper));
}

/// Plots the efficiency of each scheme, with what it is if steps take as long as the ends of their
/// intervals.
std::string plot(const ScaleReport& report) {
  Plot all{.x = {.title = "GPUs",
                 .label = [](double gpus) { return grouped(std::llround(gpus)); },
                 .step = 2},
           .y = {.title = "efficiency",
                 .label = [](double share) { return to_share(share, 0); },
                 .is_linear = true,
                 .from = 0,
                 .to = 1},
           .described = "Efficiency over GPUs, with its interval; the table has the same numbers"};
  PlotLine ideal{.name = "ideal: each GPU as fast as one alone", .is_dashed = true};
  for (const ScalePoint& point : report.points) {
    if (all.lines.empty() || all.lines.back().name != point.scheme)
      all.lines.push_back({.name = point.scheme, .colour = all.lines.size()});
    if (!point.refused.empty()) continue;
    const auto gpus = static_cast<double>(point.gpus);
    const auto if_step_takes = [&](Nanoseconds time) {
      return point.efficiency * ratio(point.step_time, time);
    };
    all.lines.back().points.emplace_back(gpus, point.efficiency);
    all.lines.back().band.push_back({gpus, if_step_takes(point.upper), if_step_takes(point.lower)});
    if (point.scheme == report.points.front().scheme) ideal.points.emplace_back(gpus, 1);
  }
  ideal.colour = all.lines.size();
  all.lines.push_back(std::move(ideal));
  const std::string recorded = "recorded: " + to_text(report.recorded) + " a step";
  all.dots.push_back({.x = static_cast<double>(report.gpus_per_worker),
                      .y = 1,
                      .name = recorded,
                      .tooltip = recorded});
  return html_plot(std::move(all));
}

/// The whole training, as columns; JSON has it as an object.
void add_training_columns(const TrainingRun& run, Facts& facts) {
  const auto add = [&](const char* name, const char* unit,
                       const std::optional<RangedNumber>& number) {
    constexpr std::pair<const char*, double RangedNumber::*> kEnds[] = {
        {"", &RangedNumber::point},
        {"_lower", &RangedNumber::lower},
        {"_upper", &RangedNumber::upper}};
    for (const auto& [end, value] : kEnds)
      facts.column(fmt::format("{}{}{}", name, end, unit),
                   number ? nlohmann::json(*number.*value) : nlohmann::json());
  };
  add("training", "_s", run.seconds);
  add("price", "", run.price);
  facts.column("currency", unless_default(run.currency));
  add("energy", "_wh", run.energy);
  const auto failures = run.failures.value_or(TrainingRun::Failures{});
  facts.when(run.failures.has_value())
      .column("goodput", failures.goodput)
      .column("checkpoint_every_s", failures.checkpoint_every);
}

Facts scale_facts(const ScalePoint& point, bool has_training = false) {
  Facts facts;
  facts.fact("scheme", point.scheme).fact("gpus", point.gpus);
  facts.when(point.refused.empty())
      .fact("step_time_ns", point.step_time)
      .fact("lower_ns", point.lower)
      .fact("upper_ns", point.upper)
      .fact("throughput", point.throughput)
      .fact("efficiency", point.efficiency)
      .fact("transfer_ns", point.transfer)
      .fact("exposed_ns", point.exposed)
      .detail("lateness_ns", point.late)
      .fact("peak_allocated_bytes", point.peak)
      .fact("samples_per_second", point.rate)
      .detail("training", training_json(point.training))
      .fact("trust", to_string(point.trust));
  facts.when(!point.refused.empty()).fact("refused", point.refused);
  if (has_training)
    add_training_columns(point.training.value_or(TrainingRun{}),
                         facts.when(point.training.has_value()));
  return facts;
}

}  // namespace

void write_csv(const ScaleReport& report, std::ostream& out) {
  const bool has_training = std::ranges::any_of(
      report.points, [](const ScalePoint& point) { return point.training.has_value(); });
  write_rows(
      report.points, [&](const ScalePoint& point) { return scale_facts(point, has_training); },
      out);
}

nlohmann::json to_json(const ScaleReport& report) {
  return {{"schema", "foretrace.scale/1"},
          {"tool", {{"version", kVersion}}},
          {"inputs", inputs_json(report.inputs)},
          {"machine", report.machine},
          {"changes", report.changes},
          {"gpus_per_worker", report.gpus_per_worker},
          {"recorded_step_time_ns", report.recorded.count()},
          {"points",
           rows_json(report.points, [](const ScalePoint& point) { return scale_facts(point); })},
          {"limits", report.limits},
          {"assumptions", report.assumptions},
          {"trust", to_json(report.trust)}};
}

Document document_of(const ScaleReport& report) {
  using enum Document::Heading;
  Document document("Scaling");
  document.say(heading(report)).sum_up(best_of(report));
  document.section("Efficiency over GPUs", not_in_text).draw({[&] {
    return Picture::Made{plot(report) +
                         "<p class=\"quiet\">Efficiency is the throughput of each GPU, relative to "
                         "one alone. The band is the interval of the step time.</p>\n"};
  }});
  document.section("Counts", not_in_text).table(table_of(report));
  show_training(report, document);
  document.section("Limits", not_in_text);
  for (const std::string& limit : report.limits) document.say(limit);
  document.list("refused:", refusals_of(report)).list("assumed:", report.assumptions);
  document.section("Trust", not_in_text)
      .say(fmt::format("trust: {}", to_string(report.trust.grade())));
  return document;
}

}  // namespace foretrace
