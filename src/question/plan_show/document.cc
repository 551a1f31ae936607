// A pipeline schedule, as text, JSON and a page.

#include "document/document.h"

#include <algorithm>
#include <cctype>
#include <fmt/core.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "base/json_text.h"
#include "base/wording.h"
#include "document/page/page_charts.h"
#include "document/words/table.h"
#include "foretrace/answer/pipeline.h"
#include "foretrace/version.h"

namespace foretrace {
namespace {

/// Most columns of a drawing. A wider one shows kEndColumns at its begin and at its end.
constexpr std::size_t kMaxColumns = 180, kEndColumns = 88;

/// Most characters of all ranks before the middle is left out. Beyond that, passes are drawn
/// without room for their names.
constexpr std::size_t kMaxCharacters = 20'000'000;

std::string label_of(const PipelineAction& action) {
  const char letter =
      action.alternate ? static_cast<char>(std::tolower(static_cast<unsigned char>(action.letter)))
                       : action.letter;
  if (action.letter == 'U') return {letter};
  return letter + std::to_string(action.micro_batch);
}

/// How a drawing maps time to columns.
struct CellScale {
  Nanoseconds tick{1};
  std::int64_t columns = 1;  ///< Characters per tick.
  std::size_t column(Nanoseconds time) const {
    return static_cast<std::size_t>((time.count() * columns + tick.count() / 2) / tick.count());
  }
};

/// Returns a scale on which the shortest pass has room for the longest label.
CellScale scale_of(const PipelineReport& report) {
  Nanoseconds shortest = Nanoseconds::max();
  std::size_t widest = 1;
  for (const PipelineRank& rank : report.ranks) {
    for (const PipelineAction& action : rank.actions) {
      if (action.finish > action.start) shortest = std::min(shortest, action.finish - action.start);
      widest = std::max(widest, label_of(action).size());
    }
  }
  const CellScale cells{shortest, static_cast<std::int64_t>(widest + 1)};
  const auto ticks = static_cast<std::size_t>(report.makespan / shortest) + 1;
  if (ticks <= kMaxCharacters / (widest + 1) / report.ranks.size()) return cells;
  return {std::max(Nanoseconds(1), report.makespan), kMaxColumns};
}

std::string draw_rank(const PipelineRank& rank, const CellScale& scale, std::size_t width) {
  std::string line(width, '.');
  for (const PipelineAction& action : rank.actions) {
    const std::size_t from = scale.column(action.start), to = scale.column(action.finish);
    if (to <= from) continue;
    const std::string label = label_of(action);
    // A cell ends in a blank if there is room, so that neighbours stay apart.
    std::string cell(to - from, label.front());
    if (label.size() <= cell.size()) {
      std::fill(cell.begin(), cell.end(), '-');
      if (label.size() < cell.size()) cell.back() = ' ';
      std::copy(label.begin(), label.end(), cell.begin());
    }
    line.replace(from, cell.size(), cell);
  }
  return line;
}

/// Draws a line for each rank, with passes as cells whose width shows their time. The middle of a
/// long drawing is left out.
std::string draw_pipeline(const PipelineReport& report) {
  const CellScale scale = scale_of(report);
  const std::size_t width = scale.column(report.makespan);
  const std::size_t digits = std::to_string(report.ranks.size() - 1).size();
  std::string text;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    std::string line = draw_rank(report.ranks[i], scale, width);
    if (width > kMaxColumns) line.replace(kEndColumns, width - 2 * kEndColumns, " ~~ ");
    text += fmt::format("rank {:<{}} |{}|\n", i, digits, line);
  }
  return text;
}

Table pipeline_table(const PipelineReport& report) {
  bool has_bytes = false, has_versions = false;
  for (const PipelineRank& rank : report.ranks) {
    has_bytes |= rank.peak_activations.count > 0 || rank.parameters.count > 0;
    has_versions |= rank.versions > 1;
  }
  Table table{.heading = {"rank", "busy", "span", "idle", "in flight"}, .rows = {}, .left = {0}};
  if (has_versions) table.heading.push_back("versions");
  if (has_bytes) table.heading.insert(table.heading.end(), {"activations", "parameters"});
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const PipelineRank& rank = report.ranks[i];
    const double idle = rank.span == 0ns ? 0
                                         : 1 - static_cast<double>(rank.busy.count()) /
                                                   static_cast<double>(rank.span.count());
    std::vector<std::string> cells = {std::to_string(i), to_text(rank.busy), to_text(rank.span),
                                      to_share(idle), std::to_string(rank.peak_in_flight)};
    if (has_versions) cells.push_back(std::to_string(rank.versions));
    if (has_bytes) {
      cells.push_back(to_text(rank.peak_activations));
      cells.push_back(to_text(rank.parameters));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Returns a heading such as "1f1b: 4 ranks, 8 micro-batches".
std::string pipeline_heading(const PipelineReport& report) {
  std::string text = fmt::format("{}: {}", report.schedule, counted(report.ranks.size(), "rank"));
  if (report.chunks > 1) text += fmt::format(" with {} each", counted(report.chunks, "chunk"));
  return fmt::format("{}, {}", text, counted(report.micro_batches, "micro-batch"));
}

/// The meaning of a letter of a drawing, and its colour on a page.
struct PassMeaning {
  char letter;
  std::string_view words, colour;
};
constexpr PassMeaning kPassMeanings[] = {{'F', "forward", "part-compute"},
                                         {'B', "backward", "part-communication"},
                                         {'I', "input gradient", "part-communication"},
                                         {'W', "weight gradient", "part-host"},
                                         {'U', "update", "part-copy"}};

bool has_action(const PipelineReport& report, const auto& is_meant) {
  return std::ranges::any_of(report.ranks, [&](const PipelineRank& rank) {
    return std::ranges::any_of(rank.actions, is_meant);
  });
}

std::vector<PassMeaning> meanings_in(const PipelineReport& report) {
  std::vector<PassMeaning> found;
  std::ranges::copy_if(kPassMeanings, std::back_inserter(found), [&](const PassMeaning& one) {
    return has_action(report,
                      [&](const PipelineAction& action) { return action.letter == one.letter; });
  });
  return found;
}

/// Explains the letters of a drawing.
std::string pipeline_legend(const PipelineReport& report) {
  std::string text;
  for (const PassMeaning& one : meanings_in(report))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.letter, one.words);
  if (has_action(report, [](const PipelineAction& action) { return action.alternate; }))
    text += report.chunks > 1 ? "; small letters: every other chunk of a rank"
                              : "; small letters: the pipeline that goes up the ranks";
  return text;
}

std::string verdict(const PipelineReport& report) {
  return fmt::format("makespan {}, bubble rate {}", to_text(report.makespan),
                     to_fixed(report.bubble_rate, 4));
}

nlohmann::json rank_json(const PipelineRank& rank) {
  nlohmann::json actions = nlohmann::json::array();
  const bool both_ways = std::any_of(rank.actions.begin(), rank.actions.end(),
                                     [](const PipelineAction& one) { return one.pipeline > 0; });
  for (const PipelineAction& action : rank.actions) {
    nlohmann::json one = {{"action", action.name},
                          {"start_ns", action.start.count()},
                          {"finish_ns", action.finish.count()}};
    if (rank.versions > 1) one["version"] = action.version;
    if (both_ways) one["pipeline"] = action.pipeline;
    actions.push_back(std::move(one));
  }
  return {{"busy_ns", rank.busy.count()},
          {"span_ns", rank.span.count()},
          {"peak_in_flight", rank.peak_in_flight},
          {"versions", rank.versions},
          {"peak_activation_bytes", rank.peak_activations.count},
          {"parameter_bytes", rank.parameters.count},
          {"actions", std::move(actions)}};
}

/// Returns the class of the style sheet that colours an action.
std::string colour_of(char letter) {
  return std::string(std::ranges::find(kPassMeanings, letter, &PassMeaning::letter)->colour);
}

std::string bars(const PipelineReport& report) {
  const double length = std::max(1.0, static_cast<double>(report.makespan.count()));
  std::vector<BarRow> rows;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    BarRow& row = rows.emplace_back();
    row.name = "rank " + std::to_string(i);
    for (const PipelineAction& action : report.ranks[i].actions) {
      const Nanoseconds time = action.finish - action.start;
      if (time == 0ns) continue;
      row.parts.push_back({.from = static_cast<double>(action.start.count()) / length,
                           .width = static_cast<double>(time.count()) / length,
                           .label = action.name,
                           .letter = std::to_string(action.micro_batch),
                           .colour = colour_of(action.letter),
                           .tooltip = fmt::format("{}: {} to {}", action.name,
                                                  to_text(action.start), to_text(action.finish))});
    }
    row.value = to_text(report.ranks[i].span);
  }
  std::vector<LegendEntry> legend;
  for (const PassMeaning& one : meanings_in(report))
    legend.push_back({std::string(one.colour), std::string(one.words)});
  return html_bars("The passes of each rank over time; the table has their sums", rows,
                   {.length = report.makespan}) +
         html_legend(legend);
}

}  // namespace

nlohmann::json to_json(const PipelineReport& report) {
  nlohmann::json ranks = nlohmann::json::array(), peaks = nlohmann::json::array();
  for (const PipelineRank& rank : report.ranks) {
    ranks.push_back(rank_json(rank));
    peaks.push_back(rank.peak_in_flight);
  }
  return {{"schema", "foretrace.pipeline/1"},
          {"tool", {{"version", kVersion}}},
          {"schedule", report.schedule},
          {"settings", parse_json<nlohmann::json>(report.settings_json)},
          {"stages", report.stages},
          {"chunks", report.chunks},
          {"micro_batches", report.micro_batches},
          {"makespan_ns", report.makespan.count()},
          {"bubble_rate", report.bubble_rate},
          {"peak_in_flight", std::move(peaks)},
          {"ranks", std::move(ranks)},
          {"assumptions", report.assumptions}};
}

Document document_of(const PipelineReport& report) {
  using enum Document::Heading;
  Document document("Pipeline");
  document.say(pipeline_heading(report)).verdict("", verdict(report));
  document.section("Passes", not_in_text)
      .draw({[&] { return Picture::Made{.html = bars(report), .styles = {"page/prediction.css"}}; },
             draw_pipeline(report) + '\n' + pipeline_legend(report) + '\n'});
  document.section("Ranks", not_in_text).table(pipeline_table(report));
  return document.list("assumed:", report.assumptions);
}

}  // namespace foretrace
