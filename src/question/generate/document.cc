// The predicted step of a described model, as text, CSV and JSON.

#include "document/document.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "base/wording.h"
#include "document/words/facts.h"
#include "foretrace/answer/generation.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"

namespace foretrace {
namespace {

std::string_view shape_word(bool is_covered) { return is_covered ? "covered" : "extrapolated"; }

std::string_view shapes_of(const GeneratedRow& row) {
  return row.is_guessed ? "guessed layout" : shape_word(row.is_covered);
}

std::string milliseconds(Nanoseconds time) {
  return to_fixed(static_cast<double>(time.count()) / 1e6, 1);
}

std::string billions(double value) { return to_fixed(value / 1e9, 3); }

nlohmann::json step_json(const GeneratedStep& step) {
  nlohmann::json breakdown = nlohmann::json::object(), memory = nlohmann::json::array(),
                 layers = nlohmann::json::array();
  for (const auto& [name, time] : step.breakdown) breakdown[name] = time.count();
  for (const auto& [name, bytes] : step.memory)
    memory.push_back({{"part", name}, {"bytes", bytes.count}});
  for (const GeneratedLayer& layer : step.layers) {
    layers.push_back({{"name", layer.name},
                      {"count", layer.count},
                      {"parameters", layer.parameters},
                      {"operations", layer.operations},
                      {"kept_bytes", layer.kept.count},
                      {"output_bytes", layer.output.count}});
  }
  return {{"model", step.model},
          {"machine", step.machine},
          {"layout", step.layout},
          {"parameters", step.parameters},
          {"devices", step.devices},
          {"step_time_ns", step.time.count()},
          {"lower_ns", step.lower.count()},
          {"upper_ns", step.upper.count()},
          {"breakdown_ns", breakdown},
          {"memory", memory},
          {"allocated_bytes", step.allocated.count},
          {"reserved_bytes", step.reserved.count},
          {"device_memory_bytes", step.device_memory.count},
          {"out_of_memory_probability", step.out_of_memory},
          {"tokens_per_second", step.tokens_per_second},
          {"samples_per_second", step.samples_per_second},
          {"model_flops_utilization", step.utilization},
          {"shapes", shape_word(step.is_covered)},
          {"layers", layers}};
}

Facts row_facts(const GeneratedRow& row) {
  Facts facts;
  facts.fact("row", row.number)
      .fact("name", row.name)
      .fact("time_ns", row.time)
      .fact("lower_ns", row.lower)
      .fact("upper_ns", row.upper)
      .fact("measured_ns", row.measured)
      .fact("error", row.error())
      .fact("allocated_bytes", row.allocated)
      .fact("out_of_memory", row.runs_out)
      .detail("out_of_memory_probability", row.out_of_memory)
      .fact("measured_out_of_memory", row.ran_out)
      .fact("shapes", shapes_of(row))
      .fact("calibrated_on", row.was_fitted);
  return facts;
}

/// The row of a step that no row of a file asks for.
GeneratedRow row_of(const GeneratedStep& step) {
  return {.name = step.model,
          .time = step.time,
          .lower = step.lower,
          .upper = step.upper,
          .allocated = step.allocated,
          .is_covered = step.is_covered,
          .runs_out = step.out_of_memory > .5};
}

nlohmann::json score_json(const GeneratedScore& score) {
  return {{"rows", score.rows},
          {"mape", score.mean},
          {"median", score.median},
          {"p90", score.ninetieth},
          {"in_interval", score.in_interval},
          {"rank_correlation", score.rank_correlation},
          {"top1_regret", score.regret},
          {"memory_median", score.memory_median},
          {"out_of_memory",
           {{"measured", score.ran_out},
            {"found", score.found},
            {"false_alarms", score.alarms},
            {"fitting", score.fitting}}}};
}

std::string step_time_text(const GeneratedStep& step) {
  return fmt::format(
      "{}, between {} and {} (80 %), {}", to_text(step.time), to_text(step.lower),
      to_text(step.upper),
      step.is_covered ? "covered by measured steps" : "extrapolated: no similar step was measured");
}

Table memory_table(const GeneratedStep& step) {
  Table table{.heading = {"memory of the fullest device", "size", "part"}, .rows = {}};
  for (const auto& [name, bytes] : step.memory) {
    table.rows.push_back(
        {name, to_text(bytes),
         to_share(static_cast<double>(bytes.count) / static_cast<double>(step.allocated.count))});
  }
  return table;
}

Table layer_table(const GeneratedStep& step) {
  Table table{.heading = {"layer", "times", "10^9 parameters", "TFLOP forward", "kept", "output"},
              .rows = {}};
  for (const GeneratedLayer& layer : step.layers) {
    table.rows.push_back({layer.name, std::to_string(layer.count), billions(layer.parameters),
                          to_fixed(layer.operations / 1e12, 3), to_text(layer.kept),
                          to_text(layer.output)});
  }
  return table;
}

void describe_step(const GeneratedStep& step, const std::optional<TrainingRun>& training,
                   Document& document) {
  document.say(fmt::format("{} on {} of {}{}", step.model, counted(step.devices, "device"),
                           step.machine, step.layout.empty() ? "" : ", " + step.layout));
  document.sum_up(step_time_text(step));
  document.section("Step", Document::Heading::not_in_text)
      .say("Step time", step_time_text(step))
      .say("Throughput",
           fmt::format("{} tokens/s, {} per device, MFU {}", to_fixed(step.tokens_per_second, 0),
                       to_fixed(step.tokens_per_second / static_cast<double>(step.devices), 0),
                       to_share(step.utilization)))
      .say("Memory",
           fmt::format("{} allocated, {} reserved of {}; too much with a probability of {}",
                       to_text(step.allocated), to_text(step.reserved), to_text(step.device_memory),
                       to_share(step.out_of_memory)));
  if (training) {
    for (const auto& [word, text] : sentences_of(*training)) document.say(word, text);
    document.sum_up(sentences_of(*training).front().second);
  }
  Table times{.heading = {"where the time goes", "time", "part"}, .rows = {}};
  for (const auto& [name, time] : step.breakdown) {
    times.rows.push_back(
        {name, to_text(time),
         to_share(static_cast<double>(time.count()) / static_cast<double>(step.time.count()))});
  }
  document.titled("", times).titled("", memory_table(step)).titled("", layer_table(step));
}

Table row_table(const std::vector<GeneratedRow>& rows) {
  Table table{
      .heading = {"row", "step", "measured ms", "predicted ms", "from", "to", "error", "shapes"},
      .rows = {},
      .left = {1, 7}};
  for (const GeneratedRow& row : rows) {
    const auto error = row.error();
    table.rows.push_back({std::to_string(row.number), shown(row.name),
                          row.ran_out ? "out of memory" : milliseconds(*row.measured),
                          milliseconds(row.time) + (row.runs_out ? " out of memory" : ""),
                          milliseconds(row.lower), milliseconds(row.upper),
                          error ? to_percent(*error) : "-",
                          std::string(row.was_fitted ? "calibrated on" : shapes_of(row))});
  }
  return table;
}

Table score_table(const GeneratedScore& score) {
  Table table{.heading = {"rows that nothing was fitted to", ""}, .rows = {}};
  const auto add = [&](const std::string& name, const std::string& value) {
    table.rows.push_back({name, value});
  };
  add("rows", std::to_string(score.rows));
  add("mean error (MAPE)", to_share(score.mean));
  add("median error", to_share(score.median));
  add("90th percentile", to_share(score.ninetieth));
  add("measured in 80 % interval", to_share(score.in_interval));
  if (score.rank_correlation)
    add("rank correlation in groups", to_fixed(*score.rank_correlation, 3));
  if (score.regret) add("regret of the predicted best", to_share(*score.regret));
  if (score.memory_median) add("memory, median error", to_share(*score.memory_median));
  if (score.ran_out > 0 || score.alarms > 0) {
    add("out of memory, found", fmt::format("{} of {}", score.found, score.ran_out));
    add("false alarms", fmt::format("{} of {}", score.alarms, score.fitting));
  }
  return table;
}

}  // namespace

nlohmann::json to_json(const GenerationReport& report) {
  nlohmann::json fitted = nlohmann::json::object();
  for (const auto& [name, value, unit] : report.constants)
    fitted[name] = {{"value", value}, {"unit", unit}};
  return {{"schema", "foretrace.generation/1"},
          {"tool", {{"version", kVersion}}},
          {"step", report.step ? step_json(*report.step) : nlohmann::json()},
          {"training", training_json(report.training)},
          {"rows", rows_json(report.rows, row_facts)},
          {"score", report.score ? score_json(*report.score) : nlohmann::json()},
          {"constants", fitted},
          {"calibration", unless_default(report.calibration)},
          {"assumptions", report.assumptions},
          {"notes", notes_json(report.notes)}};
}

void write_csv(const GenerationReport& report, std::ostream& out) {
  std::vector<GeneratedRow> rows = report.rows;
  if (report.step) rows.push_back(row_of(*report.step));
  write_rows(rows, row_facts, out);
}

Document document_of(const GenerationReport& report) {
  Document document("Step");
  if (report.step) describe_step(*report.step, report.training, document);
  if (!report.rows.empty())
    document.section("Rows", Document::Heading::not_in_text).table(row_table(report.rows));
  if (report.score) {
    document.titled("", score_table(*report.score));
    document.sum_up(fmt::format("median error {} over {} that nothing was fitted to",
                                to_share(report.score->median),
                                counted(report.score->rows, "row")));
  }
  Table fitted{.heading = {"fitted constant", "value", "unit"}, .rows = {}, .left = {0, 2}};
  for (const auto& [name, value, unit] : report.constants)
    fitted.rows.push_back({name, to_fixed(value, 3), unit});
  if (!fitted.rows.empty())
    document.titled("", fitted).section("").say("calibration from " + report.calibration);
  std::vector<std::string> assumed = report.assumptions;
  if (report.training) std::ranges::copy(report.training->assumptions, std::back_inserter(assumed));
  return document.list("assumed:", assumed).notes(report.notes, "notes:");
}

}  // namespace foretrace
