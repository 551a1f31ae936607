// The sections about timelines.

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "document/page/page_charts.h"
#include "question/predict/sections.h"
#include "question/words/tables.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

std::string lane_title(const Graph& graph, LaneId id) {
  const Lane& lane = graph.lane(id);
  return lane.device < 0 ? lane.name : fmt::format("device {}, {}", lane.device, lane.name);
}

std::string button_html(const std::string& id, const std::string& text, const std::string& label) {
  return fmt::format("<button id=\"{}\" type=\"button\" aria-label=\"{}\">{}</button>\n", id, label,
                     text);
}

/// Says which tasks are on the page and which are not.
std::string left_out_text(const std::vector<TitledRun>& runs) {
  std::string text;
  for (const TitledRun& titled : runs) {
    const Drawing& drawing = titled.drawing;
    if (drawing.tasks_shown == drawing.tasks && drawing.lanes_left_out == 0) continue;
    if (!text.empty()) text += ' ';
    text += fmt::format("{}: {} of {} are on this page", titled.title, grouped(drawing.tasks_shown),
                        counted(drawing.tasks, "task"));
    if (drawing.step < drawing.steps.size())
      text += fmt::format(", all of {} first, then the longest", drawing.steps[drawing.step].name);
    if (drawing.lanes_left_out > 0) {
      text +=
          fmt::format("; {} with the least work left out", counted(drawing.lanes_left_out, "lane"));
    }
    text += ".";
  }
  if (text.empty()) return "All tasks are on this page.";
  return text + " For the others, the page only shows how busy each lane is.";
}

std::string controls_html(const std::vector<TitledRun>& runs) {
  const Drawing& drawing = runs.front().drawing;
  std::string html = "<div class=\"controls\">\n" + button_html("zoom-in", "+", "Zoom in") +
                     button_html("zoom-out", "&minus;", "Zoom out") +
                     button_html("whole", "Whole recording", "Show the whole recording");
  const bool has_step = drawing.step < drawing.steps.size();
  if (has_step) html += button_html("one-step", "One step", "Show one step");
  if (runs.size() > 1) {
    html += fmt::format(
        "<label>Lanes <select id=\"arrange\"><option value=\"runs\">{0} above "
        "{1}</option><option value=\"lanes\">each {0} and {1}</option></select>"
        "</label>\n<label>Align <select id=\"align\">",
        runs[0].title, runs[1].title);
    if (has_step) {
      html += fmt::format("<option value=\"step\">where {} begins</option>",
                          html_text(drawing.steps[drawing.step].name));
    }
    html += "<option value=\"start\">where the recording begins</option></select></label>\n";
  }
  return html +
         "<label><input type=\"checkbox\" id=\"path\" checked> Critical path</label>\n"
         "<span class=\"together\"><label>Search <input type=\"search\" id=\"search\" "
         "placeholder=\"part of a "
         "name\"></label>\n" +
         button_html("match-before", "&lsaquo;", "Previous match") +
         button_html("match-behind", "&rsaquo;", "Next match") +
         "</span><span id=\"matches\" role=\"status\"></span>\n</div>\n";
}

std::string class_legend() {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < kTaskClasses; ++i) {
    entries.push_back(
        {"class-" + std::to_string(i), std::string(to_string(static_cast<TaskClass>(i)))});
  }
  entries.push_back({"path", "on the critical path (a line below the task)"});
  return html_legend(entries);
}

Table lane_table(const std::vector<TitledRun>& runs) {
  Table table{.heading = {"lane"}, .rows = {}};
  std::map<std::string, std::size_t> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string& title = runs[i].title;
    table.heading.insert(table.heading.end(), {"tasks " + title, "busy " + title, "share"});
    const Nanoseconds length = std::max(runs[i].run.timeline.length, 1ns);
    for (const DrawnLane& lane : runs[i].drawing.lanes) {
      const std::string name = lane_title(runs[i].run.graph, lane.id);
      const auto [found, is_new] = rows.try_emplace(name, table.rows.size());
      if (is_new) table.rows.push_back({name});
      auto& row = table.rows[found->second];
      if (row.size() > 1 + 3 * i) continue;  // A second lane with the same name.
      row.resize(1 + 3 * i);
      row.insert(row.end(), {grouped(lane.tasks), to_text(lane.busy),
                             to_percent(static_cast<double>(lane.busy.count()) /
                                        static_cast<double>(length.count()))});
    }
  }
  for (auto& row : table.rows) row.resize(table.heading.size());
  return table;
}

/// A time range of a lane in which all tasks are of one phase.
struct PhaseBand {
  Phase phase = Phase::none;
  Nanoseconds from{0}, to{0}, work{0};
};

std::vector<PhaseBand> bands_of(const TitledRun& titled, const DrawnLane& lane) {
  std::vector<PhaseBand> bands;
  for (const TaskId id : lane.all) {
    const Task& task = titled.run.graph.task(id);
    if (task.step != static_cast<std::int32_t>(titled.drawing.step) || task.phase == Phase::none)
      continue;
    const Nanoseconds from = titled.run.timeline.start[index(id)];
    const Nanoseconds to = titled.run.timeline.finish[index(id)];
    if (bands.empty() || bands.back().phase != task.phase)
      bands.push_back({task.phase, from, from, 0ns});
    bands.back().to = std::max(bands.back().to, to);
    bands.back().work += to - from;
  }
  return bands;
}

struct LaneBands {
  std::string run, lane;
  Nanoseconds begin{0};  ///< When the step begins.
  std::vector<PhaseBand> bands;
};

/// Returns the phases on the busiest lanes of a run, in the order of the lanes.
std::vector<LaneBands> lane_bands(const TitledRun& titled) {
  constexpr std::size_t kMaxRows = 6, kMaxBands = 200;
  std::vector<std::pair<Nanoseconds, LaneBands>> all;
  const Drawing& drawing = titled.drawing;
  if (drawing.step >= drawing.steps.size()) return {};
  for (const DrawnLane& lane : drawing.lanes) {
    LaneBands row{titled.title, lane_title(titled.run.graph, lane.id),
                  drawing.steps[drawing.step].from, bands_of(titled, lane)};
    if (row.bands.empty() || row.bands.size() > kMaxBands) continue;
    Nanoseconds work{0};
    for (const PhaseBand& band : row.bands) work += band.work;
    all.emplace_back(work, std::move(row));
  }
  std::vector<Nanoseconds> works;
  for (const auto& [work, row] : all) works.push_back(work);
  std::sort(works.rbegin(), works.rend());
  const Nanoseconds least = works.size() > kMaxRows ? works[kMaxRows - 1] : 0ns;
  std::vector<LaneBands> rows;
  for (auto& [work, row] : all) {
    if (work >= least && rows.size() < kMaxRows) rows.push_back(std::move(row));
  }
  return rows;
}

/// Length of the longest bar of phases, as a share of the width.
constexpr double kBandRoom = 0.995;

BarRow band_row(const LaneBands& lane, Nanoseconds longest) {
  const auto share = [&](Nanoseconds time) {
    return kBandRoom * static_cast<double>(time.count()) / static_cast<double>(longest.count());
  };
  BarRow row{.name = fmt::format("{}, {}", lane.lane, lane.run), .parts = {}, .value = {}};
  for (const PhaseBand& band : lane.bands) {
    const std::string phase(to_string(band.phase));
    row.parts.push_back(
        {.from = share(band.from - lane.begin),
         .width = std::max(share(band.to - band.from), 0.001),
         .label = phase,
         .letter = phase.substr(0, 1),
         .colour = "phase-" + phase,
         .tooltip = fmt::format("{}, {}: {} to {}, {} of work", row.name, phase,
                                to_text(band.from - lane.begin), to_text(band.to - lane.begin),
                                to_text(band.work))});
  }
  row.value = to_text(lane.bands.back().to - lane.begin);
  return row;
}

Table band_table(const std::vector<LaneBands>& rows) {
  constexpr std::size_t kMaxRows = 200;
  Table table{.heading = {"lane", "", "phase", "begins", "ends", "work in it"},
              .rows = {},
              .left = {0, 1, 2}};
  for (const LaneBands& lane : rows) {
    for (const PhaseBand& band : lane.bands) {
      if (table.rows.size() == kMaxRows) return table;
      table.rows.push_back({lane.lane, lane.run, std::string(to_string(band.phase)),
                            to_text(band.from - lane.begin), to_text(band.to - lane.begin),
                            to_text(band.work)});
    }
  }
  return table;
}

}  // namespace

PageSection timeline_section(const std::vector<TitledRun>& runs) {
  PageSection section{.id = "timelines", .heading = "Timeline", .html = {}};
  if (runs.empty() || runs.front().drawing.lanes.empty()) return section;
  section.html = fmt::format(
      "{}<div class=\"picture\">\n<canvas id=\"timeline\" tabindex=\"0\" role=\"application\" "
      "aria-roledescription=\"timeline\" aria-label=\"Tasks over time, lane by lane\" "
      "aria-describedby=\"keys\"></canvas>\n<div id=\"hover\" class=\"hover\"></div>\n</div>\n{}"
      "<p class=\"quiet\" id=\"keys\">Zoom with the wheel, + and -, or W and S; move by "
      "dragging, with the left and right arrow keys, or A and D; up and down choose a lane, [ and "
      "] a task on it; 0 shows all. All lanes share one time axis.</p>\n<p class=\"quiet\">{}</p>\n"
      "<div id=\"inspect\" class=\"inspect\" role=\"region\" aria-label=\"The chosen task\">"
      "<p class=\"quiet\">Click a task, or choose one with the keys, to see what it waits "
      "for.</p></div>\n{}",
      controls_html(runs), class_legend(), html_text(left_out_text(runs)),
      html_folded("Lanes as a table", html_table("Lanes", lane_table(runs))));
  return section;
}

PageSection path_section(const std::vector<TitledRun>& runs) {
  PageSection section{.id = "critical-path", .heading = "Critical path", .html = {}};
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    Prediction listed;
    listed.explained = run->run.path;
    if (listed.explained.empty()) continue;
    const Table waits = wait_table(listed);
    std::string html;
    if (!waits.rows.empty()) {
      html += fmt::format("<h3>Longest waits, {}</h3>\n{}", run->title,
                          html_table("Longest waits, " + run->title, waits));
    }
    html += fmt::format("<h3>Longest work, {}</h3>\n{}", run->title,
                        html_table("Longest work, " + run->title, work_table(listed)));
    section.html += run == runs.rbegin() ? html : html_folded("The same, " + run->title, html);
  }
  if (!section.html.empty()) {
    section.html =
        "<p>The chain of tasks that ends last: the job gets faster only if something on it "
        "does.</p>\n" +
        section.html;
  }
  return section;
}

PageSection schedule_section(const std::vector<TitledRun>& runs) {
  PageSection section{.id = "schedule", .heading = "Schedule of a step", .html = {}};
  std::vector<LaneBands> rows;
  for (const TitledRun& titled : runs) {
    for (LaneBands& lane : lane_bands(titled)) rows.push_back(std::move(lane));
  }
  if (rows.empty()) return section;
  Nanoseconds longest = 1ns;
  for (const LaneBands& lane : rows) {
    for (const PhaseBand& band : lane.bands) longest = std::max(longest, band.to - lane.begin);
  }
  std::vector<BarRow> bars;
  for (const LaneBands& lane : rows) bars.push_back(band_row(lane, longest));
  const Drawing& drawing = runs.front().drawing;
  section.html =
      fmt::format("<p>Phases of {} on its busiest lanes, from its first task on.</p>\n",
                  html_text(drawing.steps[drawing.step].name)) +
      html_bars("Phases of a step, lane by lane; the table below says the same", bars,
                {.length = longest, .room = kBandRoom}) +
      html_folded("The phases as a table", html_table("Phases of a step", band_table(rows)));
  return section;
}

}  // namespace foretrace
