// One page: the verdict, level and blocks over time, and every table of the text report, which is
// also what a screen reader reads instead of the pictures. It loads nothing. Times are nanoseconds
// since the window began; a block is [made, lifetime, offset, bytes, use, op, line, flags].

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "foretrace/memory_report.h"
#include "report/memory_blocks.h"
#include "report/memory_layout.h"
#include "report/memory_page.h"
#include "report/memory_picture.h"
#include "report/memory_words.h"
#include "report/wording.h"

namespace foretrace {
namespace {

using nlohmann::json;

/// Together these keep a page of any trace below 6 MB.
constexpr std::size_t kMostBlocks = 16'000;
constexpr std::size_t kMostStretches = 8'000;
constexpr std::size_t kMostSteps = 2'000;
constexpr std::size_t kLongestName = 120;
constexpr std::size_t kTableBlocks = 100;

std::string escaped(std::string_view text) {
  std::string all;
  for (const char c : text) {
    switch (c) {
      case '&':
        all += "&amp;";
        break;
      case '<':
        all += "&lt;";
        break;
      case '>':
        all += "&gt;";
        break;
      case '"':
        all += "&quot;";
        break;
      default:
        all += c;
    }
  }
  return all;
}

/// Names by number, each once.
class NameTable {
 public:
  std::size_t number(const std::string& name) {
    const auto [found, is_new] = numbers_.try_emplace(name.substr(0, kLongestName), names_.size());
    if (is_new) names_.push_back(found->first);
    return found->second;
  }
  const json& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  json names_ = json::array();
};

json points_json(const std::vector<MemoryCurve::Point>& curve, Nanoseconds from) {
  json all = json::array();
  for (const MemoryCurve::Point& point : thinned(curve, kMostStretches))
    all.push_back({(point.time - from).count(), point.allocated.count});
  return all;
}

std::vector<MemoryCurve::Point> reserved_curve(const MemoryReport& report) {
  std::vector<MemoryCurve::Point> curve;
  if (!report.allocator) return curve;
  for (const auto& point : report.allocator->curve) {
    if (point.time > report.to) continue;
    if (point.time < report.from && !curve.empty()) curve.clear();
    curve.push_back({std::max(point.time, report.from), point.reserved});
  }
  return curve;
}

json steps_json(const MemoryReport& report) {
  json all = json::array();
  for (const auto& step : report.step_begins) {
    if (step.time < report.from || step.time > report.to || all.size() >= kMostSteps) continue;
    all.push_back({step.name, (step.time - report.from).count()});
  }
  return all;
}

json data_json(const MemoryReport& report, const Graph& graph, const MemoryLayout& layout) {
  NameTable names;
  json blocks = json::array(), uses = json::array();
  // What nothing names stands at the bottom, as one block of the whole window.
  const std::int64_t bottom = report.unnamed.count;
  const std::int64_t length = (report.to - report.from).count();
  if (bottom > 0) {
    blocks.push_back({0, length, 0, bottom, 0, names.number("in use before the recording"),
                      names.number(""), 3});
  }
  for (const PlacedBlock& placed : layout.blocks) {
    const Allocation& block = graph.allocations()[placed.block.allocation];
    const Nanoseconds made = std::max(placed.block.made, report.from);
    const Nanoseconds freed = std::min(placed.block.freed, report.to);
    blocks.push_back({(made - report.from).count(), (freed - made).count(), placed.offset + bottom,
                      block.bytes.count, static_cast<int>(block.use),
                      names.number(maker_of(graph, block)), names.number(line_of(graph, block)),
                      (placed.block.was_there ? 1 : 0) + (placed.block.is_left ? 2 : 0)});
  }
  for (const std::string_view name : memory_use_names()) uses.push_back(name);
  return {{"from", report.from.count()},
          {"length", length},
          {"has_times", report.has_times},
          {"crowded", report.has_times && is_crowded(report)},
          {"limit", report.limit.count},
          {"height", layout.height + bottom},
          {"uses", std::move(uses)},
          {"names", names.names()},
          {"blocks", std::move(blocks)},
          {"rest", points_json(layout.rest, report.from)},
          {"level", points_json(report.curve, report.from)},
          {"reserved", points_json(reserved_curve(report), report.from)},
          {"needed", points_json(report.intervals.needs, report.from)},
          {"steps", steps_json(report)}};
}

/// Bars of text are drawn, as nobody wants to hear them read.
std::string cell(const std::string& text) {
  if (text.empty() || text.find_first_not_of('#') != std::string::npos) return escaped(text);
  return "<span class=\"bar\" style=\"width: " + std::to_string(text.size()) +
         "ch\" aria-hidden=\"true\"></span>";
}

void write_table(const std::string& caption, const Table& table, std::ostream& out) {
  const auto is_left = [&](std::size_t column) {
    return std::find(table.left.begin(), table.left.end(), column) != table.left.end();
  };
  out << "<div class=\"table\"><table aria-label=\"" << escaped(caption) << "\"><thead><tr>";
  for (std::size_t i = 0; i < table.heading.size(); ++i) {
    out << "<th scope=\"col\"" << (is_left(i) ? " class=\"left\">" : ">")
        << escaped(table.heading[i]) << "</th>";
  }
  out << "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out << "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out << (is_left(i) ? "<td class=\"left\">" : "<td>") << cell(row[i]) << "</td>";
    out << "</tr>\n";
  }
  out << "</tbody></table></div>\n";
}

void write_section(const MemorySection& section, std::ostream& out) {
  out << "<h2>" << escaped(section.heading) << "</h2>\n";
  for (const std::string& line : section.before) out << "<p>" << escaped(line) << "</p>\n";
  if (!section.table.rows.empty()) write_table(section.heading, section.table, out);
  for (const std::string& line : section.after) out << "<p>" << escaped(line) << "</p>\n";
}

MemorySection largest_blocks(const Graph& graph, const MemoryLayout& layout) {
  MemorySection section{.heading = "Largest blocks", .before = {}, .table = {}, .after = {}};
  section.table.heading = {"bytes", "use", "made at", "lifetime", "by"};
  section.table.left = {1, 4};
  for (const PlacedBlock& placed : layout.blocks) {
    if (section.table.rows.size() == kTableBlocks) break;
    const Allocation& block = graph.allocations()[placed.block.allocation];
    section.table.rows.push_back(
        {to_text(block.bytes), std::string(to_string(block.use)),
         placed.block.was_there ? "before" : to_text(placed.block.made),
         placed.block.is_left ? "not freed" : to_text(placed.block.freed - placed.block.made),
         who_text(maker_of(graph, block), line_of(graph, block))});
  }
  return section;
}

void write_legend(const MemoryReport& report, const MemoryLayout& layout, std::ostream& out) {
  const auto entry = [&](const std::string& colour, std::string_view text) {
    out << "<span style=\"--c: var(--" << colour << ")\">" << escaped(text) << "</span>\n";
  };
  out << "<div class=\"legend\" aria-label=\"Legend\">\n";
  entry("allocated", "allocated");
  if (report.allocator) entry("reserved", "reserved (replayed)");
  if (!report.intervals.needs.empty()) entry("needed", "needed by tasks on the device");
  if (report.limit > Bytes{}) entry("limit", "limit");
  for (const UseRow& row : report.uses) {
    entry("use-" + std::to_string(static_cast<int>(row.use)), plural(row.use));
  }
  if (layout.rest_blocks > 0)
    entry("rest", grouped(layout.rest_blocks) + " smaller blocks, as one band");
  out << "</div>\n";
}

void write_picture(const MemoryReport& report, const MemoryLayout& layout, std::ostream& out) {
  const std::string label = escaped(verdict_lines(report)[1]) + "; the tables below say the same";
  out << "<div class=\"picture\">\n<canvas id=\"level\" tabindex=\"0\" role=\"img\" "
         "aria-describedby=\"hint\" aria-label=\""
         "Level over time: "
      << label
      << "\"></canvas>\n<canvas id=\"blocks\" tabindex=\"0\" role=\"img\" "
         "aria-describedby=\"hint\" "
         "aria-label=\"Blocks over time: "
      << label << "\"></canvas>\n<div id=\"hover\"></div>\n</div>\n";
  write_legend(report, layout, out);
  out << "<p class=\"quiet\" id=\"hint\">Height is bytes, width is <span id=\"scale\">time</span>; "
         "a block stands where a gap has room "
         "for it. Wheel or + and - zoom, dragging or arrow keys move. <button id=\"whole\" "
         "type=\"button\">Show all</button> <button id=\"widths\" type=\"button\">Draw by "
         "change</button></p>\n";
}

/// As the text of a script element, in which nothing may look like its end.
std::string script_text(const json& data) {
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

void write_memory_html(const MemoryReport& report, const Graph& graph, std::ostream& out) {
  const MemoryLayout layout = lay_out(report, graph, kMostBlocks);
  const std::vector<std::string> verdict = verdict_lines(report);
  out << "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Memory: "
      << escaped(report.trace) << "</title>\n<style>" << memory_page_style()
      << "</style>\n</head>\n<body>\n<main>\n<h1>" << escaped(verdict[0])
      << "</h1>\n<p class=\"verdict\">" << escaped(verdict[1]) << "</p>\n";
  for (std::size_t i = 2; i < verdict.size(); ++i) out << "<p>" << escaped(verdict[i]) << "</p>\n";
  write_picture(report, layout, out);
  for (const MemorySection& section : memory_sections(report)) write_section(section, out);
  write_section(largest_blocks(graph, layout), out);
  MemorySection rests{.heading = "Assumes", .before = report.assumptions, .table = {}, .after = {}};
  if (!rests.before.empty()) write_section(rests, out);
  MemorySection notes{.heading = "Notes", .before = {}, .table = {}, .after = {}};
  for (const Note& note : report.notes.all()) notes.before.push_back(note_text(note));
  if (!notes.before.empty()) write_section(notes, out);
  out << "</main>\n<script type=\"application/json\" id=\"data\">"
      << script_text(data_json(report, graph, layout)) << "</script>\n<script>"
      << memory_page_script() << "</script>\n</body>\n</html>\n";
}

}  // namespace foretrace
