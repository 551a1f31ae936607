// The sections about figures; timeline.cc has the sections about timelines.

#include "report/prediction/sections.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "document/page/page_charts.h"
#include "report/words/tables.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

/// Length of the longest bar, as a share of the width; the rest stays free on the right.
constexpr double kWidestBar = 0.98;

std::string html_list(const std::string& heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string html = heading.empty() ? "" : fmt::format("<h3>{}</h3>\n", html_text(heading));
  return html + html_items(lines);
}

/// Returns a bar of the parts of a step, on a scale that ends at `widest`.
BarRow step_bar(const std::string& name, const std::vector<StepPart>& parts,
                Nanoseconds StepPart::*time, Nanoseconds widest) {
  BarRow row{.name = name, .parts = {}};
  Nanoseconds at{0};
  for (const StepPart& part : parts) {
    const std::string part_name(part.name);
    row.parts.push_back(
        {.from = kWidestBar * ratio(at, widest),
         .width = kWidestBar * ratio(part.*time, widest),
         .label = fmt::format("{} {}", part_name, to_text(part.*time)),
         .letter = part_name,
         .colour = "part-" + part_name,
         .tooltip = fmt::format("{}, {}: {}", name, part_name, to_text(part.*time))});
    at += part.*time;
  }
  row.value = to_text(at);
  return row;
}

std::string time_bars(const Prediction& prediction) {
  const auto all = step_parts(prediction);
  const std::vector<StepPart> parts(all.begin(), all.end());
  const bool what_if = is_what_if(prediction);
  Nanoseconds before{0}, after{0};
  for (const StepPart& part : parts) before += part.baseline, after += part.predicted;
  const Nanoseconds widest = what_if ? std::max(before, after) : before;
  std::vector<BarRow> rows = {step_bar("now", parts, &StepPart::baseline, widest)};
  if (what_if) rows.push_back(step_bar("predicted", parts, &StepPart::predicted, widest));
  std::vector<LegendEntry> legend;
  for (const StepPart& part : parts) {
    if (part.baseline > 0ns || part.predicted > 0ns)
      legend.push_back({"part-" + std::string(part.name), std::string(part.name)});
  }
  return html_bars("Where the time of a step goes; the table below says the same", rows) +
         html_legend(legend);
}

/// Returns the bars of one device: allocated and reserved memory, with the limit as a line across.
std::vector<BarRow> peak_bars(const MemoryPeak& peak, const std::string& when, Bytes widest,
                              Bytes limit) {
  std::vector<BarRow> rows;
  const auto add = [&](const std::string& what, Bytes bytes) {
    const std::string name = fmt::format("{}, {}, {}", device_text(peak.device), what, when);
    rows.push_back({.name = name,
                    .parts = {{.from = 0,
                               .width = kWidestBar * ratio(bytes, widest),
                               .label = {},
                               .letter = {},
                               .colour = what == "allocated" ? "part-compute" : "part-host",
                               .tooltip = fmt::format("{}: {}", name, to_text(bytes))}},
                    .value = to_text(bytes)});
    if (limit > Bytes{})
      rows.back().marks = {{kWidestBar * ratio(limit, widest), "bad", "limit: " + to_text(limit)}};
  };
  add("allocated", peak.peak_allocated);
  if (peak.peak_reserved) add("reserved", *peak.peak_reserved);
  if (peak.recorded_reserved) add("reserved as recorded", *peak.recorded_reserved);
  return rows;
}

std::string memory_bars(const Prediction& prediction) {
  Bytes widest = prediction.memory_limit;
  for (const auto* peaks : {&prediction.baseline_memory, &prediction.predicted_memory}) {
    for (const MemoryPeak& peak : *peaks) {
      widest = std::max({widest, peak.peak_allocated, peak.peak_reserved.value_or(Bytes{}),
                         peak.recorded_reserved.value_or(Bytes{})});
    }
  }
  std::vector<BarRow> rows;
  const auto add = [&](const std::vector<MemoryPeak>& peaks, const std::string& when) {
    for (const MemoryPeak& peak : peaks) {
      for (BarRow& row : peak_bars(peak, when, widest, prediction.memory_limit))
        rows.push_back(std::move(row));
    }
  };
  add(prediction.baseline_memory, "now");
  if (asks_memory(prediction)) add(prediction.predicted_memory, "predicted");
  std::string html = html_bars("Peaks of memory; the table below says the same", rows);
  if (prediction.memory_limit > Bytes{}) {
    html += fmt::format("<p class=\"quiet\">The line across is the limit, {}.</p>\n",
                        html_text(to_text(prediction.memory_limit)));
  }
  return html;
}

Table input_table(const Prediction& prediction) {
  Table table{.heading = {"file", "format", "sha256"}, .rows = {}, .left = {0, 1, 2}};
  for (const InputFile& input : prediction.inputs)
    table.rows.push_back({input.path, input.format, input.sha256});
  return table;
}

/// Returns bars of the step time as recorded and as predicted, with its interval, on one scale from
/// 0.
std::string interval_bars(const Prediction& prediction) {
  const Nanoseconds widest =
      std::max({prediction.upper, prediction.predicted.step_time, prediction.baseline.step_time});
  const auto at = [&](Nanoseconds time) { return kWidestBar * ratio(time, widest); };
  const auto bar = [&](const std::string& name, Nanoseconds time) {
    return BarRow{.name = name,
                  .parts = {{.from = 0,
                             .width = at(time),
                             .label = {},
                             .letter = {},
                             .colour = "kept",
                             .tooltip = fmt::format("{}: {}", name, to_text(time))}},
                  .value = to_text(time)};
  };
  std::vector<BarRow> rows;
  if (is_what_if(prediction)) rows.push_back(bar("now", prediction.baseline.step_time));
  rows.push_back(bar(is_what_if(prediction) ? "predicted" : "now", prediction.predicted.step_time));
  const std::string between =
      fmt::format("{} to {}", to_text(prediction.lower), to_text(prediction.upper));
  rows.back().range = {at(prediction.lower), at(prediction.upper), between};
  rows.back().value += ", " + between;
  return html_bars("The interval of the prediction; the sentence below says the same", rows);
}

}  // namespace

PageSection time_section(const PredictionPage& page) {
  const Prediction& prediction = page.prediction;
  PageSection section{.id = "time", .heading = "Where the time goes", .html = {}};
  if (!prediction.has_times) return section;
  const Table rates = rate_table(prediction), ranks = rank_table(prediction);
  section.html = time_bars(prediction) + html_table("Where the time goes", time_table(prediction)) +
                 (rates.rows.empty() ? "" : html_table("Rates", rates)) +
                 (ranks.rows.empty() ? "" : html_table("Ranks", ranks)) +
                 html_list("What was changed in the whole recording", changes(prediction)) +
                 html_list("Figures", figures(prediction));
  return section;
}

PageSection peaks_section(const PredictionPage& page) {
  const Prediction& prediction = page.prediction;
  PageSection section{.id = "memory", .heading = "Memory", .html = {}};
  const Table table = memory_table(prediction);
  if (table.rows.empty()) return section;
  const std::string fits = verdict(prediction).fits;
  if (!fits.empty()) section.html += fmt::format("<p>Does it fit? {}</p>\n", html_text(fits));
  section.html += memory_bars(prediction) + html_table("Peaks of memory", table);
  section.html +=
      "<h3>Allocated over time</h3>\n"
      "<div class=\"controls\"><label>Device <select id=\"device\"></select></label> "
      "<label><input type=\"checkbox\" id=\"follow\" checked> Follow the timeline</label></div>\n"
      "<div id=\"levels\" role=\"img\" aria-label=\"Memory allocated over time; the table below "
      "has it step by step\"></div>\n<div id=\"levels-table\"></div>\n";
  return section;
}

PageSection sensitivities_section(const PredictionPage& page) {
  PageSection section{.id = "reactions", .heading = "What the step time depends on", .html = {}};
  if (page.sensitivities.empty()) return section;
  Nanoseconds most = 1ns;
  for (const Sensitivity& sensitivity : page.sensitivities)
    most =
        std::max(most, sensitivity.step_time - std::min(sensitivity.by_half, sensitivity.by_tenth));
  Table table{.heading = {"if this took less time", "work in a step", "10 % less", "change",
                          "50 % less", "change"},
              .rows = {}};
  std::vector<BarRow> rows;
  for (const Sensitivity& sensitivity : page.sensitivities) {
    const auto change = [&](Nanoseconds then) { return change_text(sensitivity.step_time, then); };
    table.rows.push_back({sensitivity.title, to_text(sensitivity.work),
                          to_text(sensitivity.by_tenth), change(sensitivity.by_tenth),
                          to_text(sensitivity.by_half), change(sensitivity.by_half)});
    const Nanoseconds tenth = std::max(0ns, sensitivity.step_time - sensitivity.by_tenth);
    const Nanoseconds half = std::max(tenth, sensitivity.step_time - sensitivity.by_half);
    const double first = kWidestBar * ratio(tenth, most);
    rows.push_back({.name = sensitivity.title,
                    .parts = {{.from = 0,
                               .width = first,
                               .label = "10 %",
                               .letter = {},
                               .colour = "part-compute",
                               .tooltip = "a tenth less: saves " + to_text(tenth)},
                              {.from = first,
                               .width = kWidestBar * ratio(half - tenth, most),
                               .label = "50 %",
                               .letter = {},
                               .colour = "part-host",
                               .tooltip = "half: saves " + to_text(half)}},
                    .value = change(sensitivity.by_half)});
  }
  section.html = fmt::format(
                     "<p>Each kind of work is made faster alone, with everything else as {}, and "
                     "the job is replayed. A long bar is worth working on; steps do not wait for "
                     "work without a bar.</p>\n",
                     is_what_if(page.prediction) ? "predicted" : "recorded") +
                 html_bars("Time saved in a step; the table below says the same", rows) +
                 html_table("Step times if one kind of work were faster", table);
  return section;
}

PageSection certainty_section(const Prediction& prediction) {
  PageSection section{.id = "certainty", .heading = "How sure", .html = {}};
  if (!prediction.has_times) return section;
  section.html = fmt::format("{}<p>{}</p>\n", interval_bars(prediction),
                             html_text(verdict(prediction).how_sure));
  Table table{.heading = {"because of", "lower by", "upper by", ""}, .rows = {}, .left = {0, 3}};
  for (const IntervalPart& part : prediction.interval_parts)
    table.rows.push_back({part.source, to_text(part.lower), to_text(part.upper), part.text});
  if (!table.rows.empty()) section.html += html_table("Parts of the interval", table);
  return section;
}

PageSection evidence_section(const Prediction& prediction) {
  PageSection section{.id = "grounds", .heading = "What the prediction is based on", .html = {}};
  Table table{.heading = {"ground", "evidence"}, .rows = {}, .left = {0, 1}};
  for (const EvidenceLine& evidence : evidence_lines(prediction))
    table.rows.push_back({std::string(evidence.heading), evidence.sentence});
  section.html = html_table("What the prediction is based on", table) +
                 html_list("Assumes", prediction.assumptions) +
                 html_list("Notes", note_texts(prediction.notes));
  if (!prediction.inputs.empty())
    section.html += "<h3>Inputs</h3>\n" + html_table("Inputs", input_table(prediction));
  if (!prediction.scenario_json.empty()) {
    section.html += html_folded(
        "The question, as a scenario with all its settings",
        fmt::format("<pre tabindex=\"0\">{}</pre>\n", html_text(prediction.scenario_json)));
  }
  return section;
}

}  // namespace foretrace
