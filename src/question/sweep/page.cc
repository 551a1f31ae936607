// The answers of a sweep as one page: parallel axes with brushes, one for each setting and result;
// two axes against each other, with the front; and a table of the answers that the brushes keep.

#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <variant>

#include "base/json_text.h"
#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "document/document.h"
#include "document/page/heat_map.h"
#include "document/page/page_shell.h"
#include "foretrace/answer/sweep.h"
#include "question/sweep/columns.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

/// Most lines that are drawn; more would be slow to draw and impossible to distinguish.
constexpr std::size_t kMaxDrawn = 20'000;
constexpr std::size_t kMaxFigureAxes = 4;

using PageJson = nlohmann::ordered_json;

/// Returns the answers to draw: all of them, or an even selection with the whole front.
std::vector<std::size_t> drawn_points(const SweepReport& report, const SweepSummary& summary) {
  std::vector<std::size_t> answered;
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    if (report.points[i].refused.empty()) answered.push_back(i);
  }
  if (answered.size() <= kMaxDrawn) return answered;
  std::vector<std::size_t> chosen = summary.front;
  if (summary.best) chosen.push_back(*summary.best);
  for (std::size_t i = 0; i < kMaxDrawn; ++i)
    chosen.push_back(answered[i * answered.size() / kMaxDrawn]);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

PageJson axis_of_numbers(const std::string& name, const std::string& key, const std::string& unit,
                         PageJson values) {
  return {{"name", name}, {"key", key}, {"unit", unit}, {"values", std::move(values)}};
}

/// Returns the axis of a setting. Numbers are used as they are, other values by their index among
/// the values of the setting.
PageJson axis_of_setting(const SweepReport& report, const std::vector<std::size_t>& drawn,
                         std::size_t setting, const std::string& label) {
  PageJson values = PageJson::array();
  bool all_numbers = true;
  for (const std::size_t i : drawn) {
    values.push_back(parse_json<PageJson>(report.points[i].values[setting]));
    all_numbers = all_numbers && values.back().is_number();
  }
  const std::string& name = report.header.settings[setting];
  if (all_numbers) return axis_of_numbers(label, name, "", std::move(values));
  std::map<std::string, std::size_t> places;
  PageJson names = PageJson::array(), numbers = PageJson::array();
  for (const PageJson& value : values) {
    const std::string text = value.is_string() ? value.get<std::string>() : json_line(value);
    const auto [place, is_new] = places.emplace(text, names.size());
    if (is_new) names.push_back(text);
    numbers.push_back(place->second);
  }
  PageJson axis = axis_of_numbers(label, name, "", std::move(numbers));
  axis["names"] = std::move(names);
  return axis;
}

/// Adds an axis of results, unless all values are equal; step time is always added.
template <class Value>
void add_result(PageJson& axes, const SweepReport& report, const std::vector<std::size_t>& drawn,
                const PageJson& axis, const Value& value_of) {
  PageJson values = PageJson::array();
  std::set<std::string> distinct;
  for (const std::size_t i : drawn) {
    values.push_back(value_of(report.points[i]));
    if (!values.back().is_null()) distinct.insert(json_line(values.back()));
  }
  if (distinct.empty() || (distinct.size() == 1 && axis["key"] != "step_time_ns")) return;
  axes.push_back(axis);
  axes.back()["values"] = std::move(values);
}

std::vector<std::string> figure_names(const SweepReport& report) {
  std::vector<std::string> names;
  for (const SweepPoint& point : report.points) {
    for (const SweepFigure& figure : point.figures) {
      const bool is_known = std::find(names.begin(), names.end(), figure.name) != names.end();
      if (!is_known && names.size() < kMaxFigureAxes) names.push_back(figure.name);
    }
  }
  return names;
}

PageJson axes_of(const SweepReport& report, const std::vector<std::size_t>& drawn) {
  PageJson axes = PageJson::array();
  const std::vector<std::string> labels = setting_labels(report.header);
  for (std::size_t i = 0; i < labels.size(); ++i)
    axes.push_back(axis_of_setting(report, drawn, i, labels[i]));
  const auto add = [&](const std::string& name, const std::string& key, const auto& value_of) {
    const std::string unit(unit_of_key(key));
    add_result(axes, report, drawn, axis_of_numbers(name, key, unit, {}), value_of);
  };
  for (const PointColumn* column : table_columns(report))
    add(column_title(*column, report.header), column->key, column->value);
  for (const std::string& name : figure_names(report)) {
    add(std::string(without_unit(name)), name, [&](const SweepPoint& point) {
      for (const SweepFigure& figure : point.figures) {
        if (figure.name == name) return parse_json<PageJson>(figure.value);
      }
      return PageJson();
    });
  }
  return axes;
}

/// Says whether the point is usable, which its time does not show.
const char* usability(const SweepPoint& point) {
  if (!point.fits.value_or(true)) return "out of memory";
  bool is_undecided = false;
  for (const std::string& verdict : point.verdicts) {
    if (verdict == "fails") return "failing an assertion";
    is_undecided = is_undecided || verdict == "undecided";
  }
  return is_undecided ? "undecided" : "usable";
}

bool is_failing(const SweepPoint& point) {
  const std::string_view use = usability(point);
  return use != "usable" && use != "undecided";
}

/// Returns the distinct values of a setting: numbers in ascending order, others as they come.
std::vector<std::string> values_of(const SweepReport& report, std::size_t setting) {
  std::vector<std::string> values;
  for (const SweepPoint& point : report.points) {
    if (std::ranges::find(values, point.values[setting]) == values.end())
      values.push_back(point.values[setting]);
  }
  const auto number = [](const std::string& value) { return parse_json<PageJson>(value); };
  if (std::ranges::all_of(values,
                          [&](const std::string& value) { return number(value).is_number(); }))
    std::ranges::sort(values, {},
                      [&](const std::string& value) { return number(value).get<double>(); });
  return values;
}

HeatCell heat_cell(const SweepReport& report, const SweepPoint& point, Nanoseconds fastest,
                   Nanoseconds slowest) {
  if (!point.refused.empty())
    return {.text = "refused", .tooltip = point.refused, .share = 0, .holds = false};
  std::string tooltip = usability(point);
  for (const PointColumn* column : table_columns(report)) {
    if (column->key == std::string_view("step_time_ns")) continue;
    tooltip += fmt::format(", {} {}", column_title(*column, report.header),
                           value_text(column->key, column->value(point)));
  }
  return {.text = to_text(point.step_time),
          .tooltip = std::move(tooltip),
          .share = ratio(point.step_time - fastest, slowest - fastest),
          .holds = !is_failing(point)};
}

/// Returns a map of step times over two settings; empty if there are more or fewer, or too many
/// values for a map.
std::string heat_map_of(const SweepReport& report, const SweepSummary& summary) {
  constexpr std::size_t kMaxCells = 2'500;
  if (report.header.settings.size() != 2 || summary.answered == 0) return {};
  const std::vector<std::string> down = values_of(report, 0), across = values_of(report, 1);
  if (down.size() * across.size() > kMaxCells) return {};
  Nanoseconds fastest = Nanoseconds::max(), slowest{0};
  for (const SweepPoint& point : report.points) {
    if (!point.refused.empty()) continue;
    fastest = std::min(fastest, point.step_time), slowest = std::max(slowest, point.step_time);
  }
  const std::vector<std::string> labels = setting_labels(report.header);
  HeatMap map;
  map.described = "Step times over both settings", map.down = labels[0], map.across = labels[1];
  map.cells.assign(down.size(), std::vector<HeatCell>(across.size()));
  std::ranges::transform(down, std::back_inserter(map.rows), plain_value);
  std::ranges::transform(across, std::back_inserter(map.columns), plain_value);
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    const SweepPoint& point = report.points[i];
    const auto row = std::ranges::find(down, point.values[0]) - down.begin();
    const auto column = std::ranges::find(across, point.values[1]) - across.begin();
    HeatCell& cell = map.cells[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
    cell = heat_cell(report, point, fastest, slowest);
    cell.is_best = summary.best == i;
  }
  const std::string asked =
      report.header.asserts.empty() ? "" : joined(report.header.asserts, ", ");
  return html_heat_map(map) +
         fmt::format(
             "<p class=\"quiet\">The stronger the colour, the longer a step takes: {} to {}. "
             "Hatched answers {}; a thick line parts them from those that hold. The frame is "
             "around the fastest that "
             "holds.</p>\n",
             to_text(fastest), to_text(slowest),
             asked.empty() ? "do not fit into memory"
                           : "do not fit into memory, or fail " + html_text(asked));
}

/// Adds an axis of usability(), unless all points are usable.
void add_usability_axis(PageJson& axes, const SweepReport& report,
                        const std::vector<std::size_t>& drawn) {
  const std::vector<std::string> kinds = {"out of memory", "failing an assertion", "undecided",
                                          "usable"};
  std::set<std::size_t> found;
  std::vector<std::size_t> uses;
  for (const std::size_t i : drawn) {
    const auto kind = std::find(kinds.begin(), kinds.end(), usability(report.points[i]));
    uses.push_back(static_cast<std::size_t>(kind - kinds.begin()));
    found.insert(uses.back());
  }
  if (found.empty() || *found.begin() + 1 == kinds.size()) return;
  PageJson names = PageJson::array(), values = PageJson::array();
  for (const std::size_t kind : found) names.push_back(kinds[kind]);
  for (const std::size_t use : uses)
    values.push_back(std::distance(found.begin(), found.find(use)));
  axes.push_back(axis_of_numbers("use", "use", "", std::move(values)));
  axes.back()["names"] = std::move(names);
}

/// Returns the axis that is first plotted against step time: memory, or the setting that influences
/// step time most.
std::size_t initial_x_axis(const PageJson& axes, const SweepSummary& summary) {
  std::string wanted = summary.effects.empty() ? "" : summary.effects.front().setting;
  if (!summary.front.empty())
    wanted = summary.by_reserved ? "peak_reserved_bytes" : "peak_allocated_bytes";
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i]["key"] == wanted) return i;
  }
  return 0;
}

/// Returns the summary as HTML.
std::string lead_of(const SweepReport& report) {
  std::string html;
  for (const Document::Section& section : document_of(report).sections()) {
    for (const Document::Block& block : section.blocks) {
      if (const auto* sentence = std::get_if<Sentence>(&block); sentence && !sentence->is_lead)
        html += fmt::format("<p>{}</p>\n", html_text(sentence->text));
      if (const auto* placed = std::get_if<PlacedTable>(&block))
        html += fmt::format("<p>{}</p>\n", html_text(section.heading)) +
                html_table(section.heading, placed->table);
    }
  }
  return html;
}

constexpr std::string_view kParallelHtml =
    "<p class=\"quiet\">One line for each answer. Drag along an axis to keep the answers in that "
    "range; a click removes the range. Dashed red lines do not hold.{}</p><div class=\"picture "
    "sideways\" role=\"group\" aria-label=\"Parallel axes\"><canvas id=\"parallel\" role=\"img\" "
    "aria-label=\"One line for each answer across all settings and results; the table below has "
    "the "
    "same\"></canvas></div><div class=\"controls\"><button id=\"all\" type=\"button\">Keep all"
    "</button><span id=\"told\"></span></div><div class=\"controls\" id=\"limits\"></div>";
constexpr std::string_view kPairHtml =
    "<div class=\"controls\"><label>across <select id=\"across\"></select></label>"
    "<label>up <select id=\"up\"></select></label></div>"
    "<div class=\"picture\"><canvas id=\"pair\" role=\"img\" aria-label=\"Two axes against each "
    "other; the table below has the same\"></canvas></div>";
constexpr std::string_view kTableHtml =
    "<div class=\"table\" role=\"group\" aria-label=\"Answers kept\"><table id=\"kept\">"
    "<caption>* on the front; the head of a column sorts by it</caption></table></div>";

}  // namespace

void write_sweep_page(const SweepReport& report, std::ostream& out) {
  const SweepSummary summary = summarize(report);
  const std::vector<std::size_t> drawn = drawn_points(report, summary);
  PageJson numbers = PageJson::array(), front = PageJson::array(), failing = PageJson::array();
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    numbers.push_back(report.points[drawn[i]].number);
    if (std::find(summary.front.begin(), summary.front.end(), drawn[i]) != summary.front.end())
      front.push_back(i);
    if (is_failing(report.points[drawn[i]])) failing.push_back(i);
  }
  PageJson axes = axes_of(report, drawn);
  add_usability_axis(axes, report, drawn);
  const PageJson shown = {{"numbers", numbers},
                          {"front", front},
                          {"failing", failing},
                          {"across", initial_x_axis(axes, summary)},
                          {"axes", axes}};
  Page page;
  page.title = "Foretrace: sweep";
  page.heading = counted(report.points.size(), "answer") + " of a sweep";
  page.lead = lead_of(report);
  if (drawn.size() < summary.answered)
    page.lead +=
        fmt::format("<p>{} of {} answers are drawn, evenly chosen; the front is complete.</p>",
                    grouped(drawn.size()), grouped(summary.answered));
  const char* const green =
      summary.front.empty() ? "" : " Green: no other answer is both faster and smaller.";
  page.sections = {{"map", "Step time over both settings", heat_map_of(report, summary)},
                   {"answers", "All answers", fmt::format(kParallelHtml, green)},
                   {"front", "Two axes against each other", std::string(kPairHtml)},
                   {"table", "Answers kept", std::string(kTableHtml)}};
  if (page.sections.front().html.empty()) page.sections.erase(page.sections.begin());
  page.styles = {"page/sweep.css"};
  page.data = {{"sweep", script_json(nlohmann::json(shown))}};
  page.scripts = {"page/sweep.js"};
  write_page(page, out);
}

}  // namespace foretrace
