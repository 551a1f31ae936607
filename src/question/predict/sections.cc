// The sections about figures; timeline.cc has the sections about timelines.

#include "question/predict/sections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <functional>

#include "base/numbers/scaling.h"
#include "document/page/page_charts.h"
#include "document/page/plot.h"
#include "question/words/step_bars.h"
#include "question/words/tables.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

std::string html_list(const std::string& heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string html = heading.empty() ? "" : fmt::format("<h3>{}</h3>\n", html_text(heading));
  return html + html_items(lines);
}

std::string time_bars(const Prediction& prediction) {
  return step_bars("Where the time of a step goes; the table below says the same", "now",
                   is_what_if(prediction) ? "predicted" : "", prediction.baseline_breakdown,
                   prediction.predicted_breakdown);
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

/// Returns the parts of a step of a rank. Communication as recorded is divided into waiting for
/// other ranks and the transfer, as all collectives of the recording are.
std::vector<StepPart> parts_of(const PredictedRank& rank) {
  std::vector<StepPart> parts;
  const double waits = ratio(rank.waits, rank.waits + rank.transfer);
  for (const StepPart& part : step_parts(rank.baseline_breakdown, rank.predicted_breakdown)) {
    const bool is_divided = part.name == "communication";
    const Nanoseconds wait = is_divided ? scaled(part.baseline, waits) : 0ns;
    parts.push_back({part.name, part.baseline - wait, part.predicted});
    if (is_divided) parts.push_back({"waiting", wait, 0ns});
  }
  return parts;
}

/// Returns the ranks that a picture has room for, the slowest of them all, by number.
std::vector<const PredictedRank*> drawn_ranks(const Prediction& prediction) {
  constexpr std::size_t kMaxRanks = 32;
  std::vector<const PredictedRank*> ranks;
  for (const PredictedRank& rank : prediction.ranks) ranks.push_back(&rank);
  std::ranges::stable_sort(ranks, std::ranges::greater(),
                           [](const PredictedRank* rank) { return rank->predicted; });
  if (ranks.size() > kMaxRanks) ranks.resize(kMaxRanks);
  std::ranges::sort(ranks, {}, &PredictedRank::number);
  return ranks;
}

/// Returns the rank that the others wait for most; nullptr if that is a small part of the
/// recording. The note on ranks has the same limit.
const PredictedRank* straggler_of(const Prediction& prediction) {
  constexpr double kMuch = 0.02;
  const auto latest = std::ranges::max_element(prediction.ranks, {}, &PredictedRank::keeps_waiting);
  return ratio(latest->keeps_waiting, prediction.window) < kMuch ? nullptr : &*latest;
}

std::string rank_bars(const Prediction& prediction, Nanoseconds StepPart::*time,
                      const std::string& described) {
  const bool is_now = time == &StepPart::baseline;
  const PredictedRank* const straggler = straggler_of(prediction);
  const std::vector<const PredictedRank*> ranks = drawn_ranks(prediction);
  const auto step = is_now ? &PredictedRank::baseline : &PredictedRank::predicted;
  const PredictedRank& slowest =
      **std::ranges::max_element(ranks, {}, [&](const PredictedRank* rank) { return rank->*step; });
  std::vector<BarRow> rows;
  std::vector<StepPart> all;
  for (const PredictedRank* rank : ranks) {
    std::string name = fmt::format("rank {}", rank->number);
    if (rank->alike > 0) name += fmt::format(" and {} like it", rank->alike);
    if (rank == &slowest) name += ", slowest";
    if (rank == straggler) name += ", straggler";
    const std::vector<StepPart> parts = parts_of(*rank);
    rows.push_back(step_bar(name, parts, time, slowest.*step));
    rows.back().value = to_text(rank->*step);
    all.insert(all.end(), parts.begin(), parts.end());
  }
  return html_bars(described + "; the table below has the steps and waits", rows) +
         parts_legend(all);
}

std::string ranks_sentence(const Prediction& prediction) {
  const PredictedRank* const straggler = straggler_of(prediction);
  if (straggler == nullptr) return "No rank keeps the others waiting for long.";
  return fmt::format(
      "The straggler is rank {}: it enters {} of {} collectives last, and the others wait {} for "
      "it in the whole recording.",
      straggler->number, straggler->times_last, straggler->matched,
      to_text(straggler->keeps_waiting));
}

/// Plots the recorded steps, those that were predicted, and the interval of the step time.
std::string step_plot(const PredictionPage& page) {
  const Prediction& prediction = page.prediction;
  const std::vector<Nanoseconds>& recorded = prediction.measured.each;
  constexpr std::size_t kMaxDots = 200;
  const auto number = [](std::size_t i) { return static_cast<double>(i + 1); };
  const auto time_of = [](Nanoseconds time) { return static_cast<double>(time.count()); };
  Plot plot{
      .x = {.title = "step",
            .label = [](double step) { return step == std::floor(step) ? to_fixed(step, 0) : ""; },
            .is_linear = true},
      .y = {.label = [](double time) { return to_text(from_nanoseconds(time)); },
            .is_linear = true,
            .from = 0},
      .described = "Times of all recorded steps; the table below has the same",
      .lines = {{.name = "recorded"}},
      .is_low = true};
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    plot.lines[0].points.emplace_back(number(i), time_of(recorded[i]));
    if (recorded.size() > kMaxDots) continue;
    plot.dots.push_back({.x = number(i),
                         .y = time_of(recorded[i]),
                         .tooltip = fmt::format("step {}: {}", i + 1, to_text(recorded[i]))});
  }
  const double from = number(prediction.measured.first), to = number(recorded.size() - 1);
  const double step = time_of(prediction.predicted.step_time);
  const double lower = time_of(prediction.lower), upper = time_of(prediction.upper);
  plot.lines.push_back({.name = is_what_if(prediction) ? "predicted step time, with its interval"
                                                       : "step time, with its interval",
                        .colour = 1,
                        .is_dashed = true,
                        .points = {{from, step}, {to, step}},
                        .band = {{from, lower, upper}, {to, lower, upper}}});
  return html_plot(std::move(plot));
}

}  // namespace

PageSection steps_section(const PredictionPage& page) {
  const StepTimes& measured = page.prediction.measured;
  PageSection section{.id = "steps", .heading = "Recorded steps", .html = {}};
  if (!page.prediction.has_times || !page.prediction.has_steps || measured.steps() < 2)
    return section;
  Table table{.heading = {"step", "recorded", ""}, .rows = {}, .left = {2}};
  for (std::size_t i = 0; i < measured.each.size(); ++i)
    table.rows.push_back({std::to_string(i + 1), to_text(measured.each[i]),
                          i < measured.first ? "does not count" : ""});
  section.html = step_plot(page) + html_folded("The steps as a table", html_table("Steps", table));
  return section;
}

namespace {

std::string lanes_of_ranks(const std::vector<RankLane>& lanes) {
  constexpr std::array<std::string_view, kRankActivities> kNames = {"compute", "copy",
                                                                    "communication", "waiting"};
  constexpr std::size_t kMaxRankLanes = 32;
  if (lanes.empty()) return {};
  std::vector<BarRow> rows;
  for (const RankLane& lane : lanes) {
    if (rows.size() == kMaxRankLanes) break;
    BarRow& row = rows.emplace_back(BarRow{.name = fmt::format("rank {}", lane.rank), .parts = {}});
    for (const RankLane::Piece& piece : lane.pieces) {
      const std::string name(kNames[static_cast<std::size_t>(piece.what)]);
      const Nanoseconds from = scaled(lane.step, piece.from), to = scaled(lane.step, piece.to);
      row.parts.push_back({.from = kWidestBar * piece.from,
                           .width = kWidestBar * (piece.to - piece.from),
                           .label = {},
                           .letter = {},
                           .colour = "part-" + name,
                           .tooltip = fmt::format("{}, {} from {} to {} of the step", row.name,
                                                  name, to_text(from), to_text(to))});
    }
  }
  std::vector<LegendEntry> legend;
  for (const std::string_view name : kNames)
    legend.push_back({fmt::format("part-{}", name), std::string(name)});
  const std::string left_out =
      lanes.size() > rows.size()
          ? fmt::format(" The first {} of {} are shown.", rows.size(), lanes.size())
          : "";
  return fmt::format(
      "<h3>One step of all ranks, on one clock</h3>\n{}{}<p class=\"quiet\">"
      "What each device does for most of each moment, over {}; waiting is for the "
      "rank that enters a collective last.{}</p>\n",
      html_bars("What the device of each rank does over one step; the table below "
                "has the waits",
                rows, {.length = lanes.front().step, .room = kWidestBar}),
      html_legend(legend), to_text(lanes.front().step), left_out);
}

}  // namespace

PageSection ranks_section(const PredictionPage& page) {
  const Prediction& prediction = page.prediction;
  PageSection section{.id = "ranks", .heading = "Ranks side by side", .html = {}};
  const Table table = rank_table(prediction);
  if (table.rows.empty()) return section;
  const std::string title = "Where the time of a step goes on each rank";
  section.html = fmt::format("<p>{}</p>\n", ranks_sentence(prediction)) +
                 rank_bars(prediction, &StepPart::baseline, title);
  if (is_what_if(prediction))
    section.html += "<h3>As predicted</h3>\n" +
                    rank_bars(prediction, &StepPart::predicted, title + ", as predicted");
  section.html += lanes_of_ranks(page.ranks);
  section.html +=
      "<p class=\"quiet\">Communication and waiting are times in which no kernel runs. Each rank's "
      "waiting is as large a part of them as of all its collectives in the recording.</p>\n" +
      html_table("Ranks", table);
  return section;
}

PageSection time_section(const PredictionPage& page) {
  const Prediction& prediction = page.prediction;
  PageSection section{.id = "time", .heading = "Where the time goes", .html = {}};
  if (!prediction.has_times) return section;
  const Table rates = rate_table(prediction);
  section.html = time_bars(prediction) + html_table("Where the time goes", time_table(prediction)) +
                 (rates.rows.empty() ? "" : "<h3>Rates</h3>\n" + html_table("Rates", rates)) +
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
                               .label = {},
                               .letter = {},
                               .colour = "part-compute",
                               .tooltip = "a tenth less: saves " + to_text(tenth)},
                              {.from = first,
                               .width = kWidestBar * ratio(half - tenth, most),
                               .label = {},
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
                 html_bars("Time saved in a step; the table below says the same", rows,
                           {.length = most, .room = kWidestBar}) +
                 html_legend({{"part-compute", "saved if it took 10 % less"},
                              {"part-host", "saved beyond that if it took 50 % less"}}) +
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
