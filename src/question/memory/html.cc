// The memory report as one page: the verdict, a picture of level and blocks over time, and every
// table of the text report, which a screen reader reads instead of the picture. The page loads
// nothing. In its data, times are nanoseconds since the window began, and a block is
// [made, lifetime, offset, bytes, use, op, line, flags].

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "analysis/memory/blocks.h"
#include "analysis/memory/layout.h"
#include "document/page/page_charts.h"
#include "document/page/page_shell.h"
#include "foretrace/answer/memory.h"
#include "foretrace/graph.h"
#include "question/memory/picture.h"
#include "question/memory/words.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// These limits keep the page of any trace below 6 MB.
constexpr std::size_t kMaxBlocks = 16'000;
constexpr std::size_t kMaxIntervals = 8'000;
constexpr std::size_t kMaxStepLines = 2'000;
constexpr std::size_t kLongestDrawnName = 120;
constexpr std::size_t kLongestStack = 1'500;
constexpr std::size_t kMaxStacks = 2'000;
constexpr std::size_t kTableBlocks = 40;

/// Assigns a number to each name, cut to its first letters. Names beyond the most have the number
/// of the first.
class NameTable {
 public:
  explicit NameTable(std::size_t longest, std::size_t most = std::string::npos)
      : longest_(longest), most_(most) {}

  std::size_t number(std::string_view name) {
    const std::string cut(name.substr(0, longest_));
    if (names_.size() >= most_ && !numbers_.contains(cut)) return 0;
    const auto [found, is_new] = numbers_.try_emplace(cut, names_.size());
    if (is_new) names_.push_back(found->first);
    return found->second;
  }
  const Json& names() const { return names_; }

 private:
  std::size_t longest_, most_;
  std::map<std::string, std::size_t> numbers_;
  Json names_ = Json::array();
};

/// The frames of Python, or all of them if none is; innermost first, joined by ';'.
std::string frames_to_show(std::string_view stack) {
  std::string python;
  for (std::string_view rest = stack; !rest.empty();) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view frame = rest.substr(0, end);
    if (frame.find(".py:") != frame.npos) (python += python.empty() ? "" : ";") += frame;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return python.empty() ? std::string(stack) : python;
}

Json points_json(const std::vector<MemoryCurve::Point>& curve, Nanoseconds from) {
  Json all = Json::array();
  for (const MemoryCurve::Point& point : thinned(curve, kMaxIntervals))
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

Json steps_json(const MemoryReport& report) {
  Json all = Json::array();
  for (const auto& step : report.step_begins) {
    if (step.time < report.from || step.time > report.to || all.size() >= kMaxStepLines) continue;
    all.push_back({step.name, (step.time - report.from).count()});
  }
  return all;
}

Json data_json(const MemoryReport& report, const Graph& graph, const MemoryLayout& layout) {
  NameTable names(kLongestDrawnName), stacks(kLongestStack, kMaxStacks);
  const std::size_t no_stack = stacks.number("");
  Json blocks = Json::array(), uses = Json::array();
  // Draw memory that belongs to no known block at the bottom, as one block over the whole window.
  const std::int64_t bottom = report.unnamed.count;
  const std::int64_t length = (report.to - report.from).count();
  if (bottom > 0) {
    blocks.push_back({0, length, 0, bottom, 0, names.number("in use before the recording"),
                      names.number(""), 3, no_stack});
  }
  for (const PlacedBlock& placed : layout.blocks) {
    const Allocation& block = graph.allocations()[placed.block.allocation];
    const Nanoseconds made = std::max(placed.block.made, report.from);
    const Nanoseconds freed = std::min(placed.block.freed, report.to);
    blocks.push_back({(made - report.from).count(), (freed - made).count(), placed.offset + bottom,
                      block.bytes.count, static_cast<int>(block.use),
                      names.number(maker_of(graph, block)), names.number(line_of(graph, block)),
                      (placed.block.was_there ? 1 : 0) + (placed.block.is_left ? 2 : 0),
                      stacks.number(frames_to_show(graph.names()[block.stack]))});
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
          {"stacks", stacks.names()},
          {"blocks", std::move(blocks)},
          {"rest", points_json(layout.rest, report.from)},
          {"level", points_json(report.curve, report.from)},
          {"reserved", points_json(reserved_curve(report), report.from)},
          {"needed", points_json(report.intervals.needs, report.from)},
          {"steps", steps_json(report)}};
}

PageSection page_section(const std::string& id, const MemorySection& section) {
  PageSection made{.id = id, .heading = section.heading, .html = {}};
  for (const std::string& line : section.before)
    made.html += fmt::format("<p>{}</p>\n", html_text(line));
  if (!section.table.rows.empty()) made.html += html_table(section.heading, section.table);
  for (const std::string& line : section.after)
    made.html += fmt::format("<p>{}</p>\n", html_text(line));
  return made;
}

/// Blocks of one size, use and maker.
struct AlikeBlocks {
  std::vector<std::string> shown;  ///< Bytes, use and maker.
  const TimedBlock* first;
  Nanoseconds longest{0};
  std::size_t count = 0, left = 0;
};

std::vector<AlikeBlocks> alike_blocks(const Graph& graph, const MemoryLayout& layout) {
  std::vector<AlikeBlocks> all;
  std::map<std::vector<std::string>, std::size_t> places;
  for (const PlacedBlock& placed : layout.blocks) {
    const Allocation& block = graph.allocations()[placed.block.allocation];
    const std::vector<std::string> shown = {
        to_text(block.bytes), std::string(to_string(block.use)),
        op_and_line(maker_of(graph, block), line_of(graph, block))};
    const auto [place, is_new] = places.try_emplace(shown, all.size());
    if (is_new) all.push_back({.shown = shown, .first = &placed.block});
    AlikeBlocks& alike = all[place->second];
    if (placed.block.made < alike.first->made) alike.first = &placed.block;
    alike.longest = std::max(alike.longest, placed.block.freed - placed.block.made);
    ++alike.count;
    alike.left += placed.block.is_left ? 1 : 0;
  }
  return all;
}

MemorySection largest_blocks(const Graph& graph, const MemoryLayout& layout) {
  MemorySection section{.heading = "Largest blocks", .before = {}, .table = {}, .after = {}};
  section.table.heading = {"bytes each",    "blocks",           "not freed", "use",
                           "first made at", "longest lifetime", "by"};
  section.table.left = {3, 6};
  for (const AlikeBlocks& alike : alike_blocks(graph, layout)) {
    if (section.table.rows.size() == kTableBlocks) break;
    section.table.rows.push_back({alike.shown[0], grouped(alike.count), grouped(alike.left),
                                  alike.shown[1],
                                  alike.first->was_there ? "before" : to_text(alike.first->made),
                                  to_text(alike.longest), alike.shown[2]});
  }
  return section;
}

std::string legend_html(const MemoryReport& report, const MemoryLayout& layout) {
  std::vector<LegendEntry> entries = {{"allocated", "allocated"}};
  if (report.allocator) entries.push_back({"reserved", "reserved (replayed)"});
  if (!report.intervals.needs.empty())
    entries.push_back({"needed", "needed by tasks on the device"});
  if (report.limit > Bytes{}) entries.push_back({"limit", "limit"});
  for (const UseRow& row : report.uses) {
    entries.push_back(
        {"use-" + std::to_string(static_cast<int>(row.use)), std::string(plural(row.use))});
  }
  if (layout.rest_blocks > 0)
    entries.push_back({"rest", grouped(layout.rest_blocks) + " smaller blocks, as one band"});
  return html_legend(entries);
}

std::string picture_html(const MemoryReport& report, const MemoryLayout& layout) {
  const std::string verdict = html_text(verdict_lines(report)[1]);
  const auto canvas = [&](const std::string& id, const std::string& what) {
    return fmt::format(
        "<canvas id=\"{}\" tabindex=\"0\" role=\"img\" aria-describedby=\"hint\" "
        "aria-label=\"{} over time: {}; the tables below say the same\"></canvas>\n",
        id, what, verdict);
  };
  return fmt::format(
      "<div class=\"picture\">\n{}{}<div id=\"hover\" class=\"hover\"></div>\n</div>\n{}"
      "<p class=\"quiet\" id=\"hint\">Height is bytes, width is <span id=\"scale\">time</span>; "
      "a block is drawn where a gap has room for it. Zoom with the wheel or + and -; move by "
      "dragging or with the arrow keys. <button id=\"whole\" type=\"button\">Show all</button> "
      "<button id=\"widths\" type=\"button\">Draw by change</button></p>\n",
      canvas("level", "Level"), canvas("blocks", "Blocks"), legend_html(report, layout));
}

/// Returns all sections; their ids count from "memory-0".
std::vector<PageSection> page_sections(const MemoryReport& report, const Graph& graph,
                                       const MemoryLayout& layout) {
  std::vector<MemorySection> all = memory_sections(report);
  all.push_back(largest_blocks(graph, layout));
  MemorySection rests{.heading = "Assumes", .before = report.assumptions, .table = {}, .after = {}};
  if (!rests.before.empty()) all.push_back(std::move(rests));
  MemorySection notes{.heading = "Notes", .before = {}, .table = {}, .after = {}};
  for (const Note& note : report.notes.all()) notes.before.push_back(note_text(note));
  if (!notes.before.empty()) all.push_back(std::move(notes));
  std::vector<PageSection> sections;
  for (const MemorySection& section : all)
    sections.push_back(page_section("memory-" + std::to_string(sections.size()), section));
  return sections;
}

}  // namespace

void write_memory_html(const MemoryReport& report, const Graph& graph, std::ostream& out) {
  const MemoryLayout layout = lay_out(report, graph, kMaxBlocks);
  const std::vector<std::string> verdict = verdict_lines(report);
  Page page{.title = "Memory: " + report.trace,
            .heading = verdict[1],
            .lead = fmt::format("<p class=\"quiet\">From {}.</p>\n", html_text(verdict[0])),
            .sections = page_sections(report, graph, layout),
            .styles = {"page/memory.css"},
            .data = {{"data", script_json(data_json(report, graph, layout))}},
            .scripts = {"page/memory.js"}};
  for (std::size_t i = 2; i < verdict.size(); ++i)
    page.lead += fmt::format("<p>{}</p>\n", html_text(verdict[i]));
  page.lead += picture_html(report, layout);
  write_page(page, out);
}

}  // namespace foretrace
