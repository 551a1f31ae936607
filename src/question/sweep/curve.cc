// Time and memory of a what-if for several values of one setting.

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_text.h"
#include "base/json_values.h"
#include "base/shown.h"
#include "document/document.h"
#include "document/page/plot.h"
#include "document/words/table.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/answer/trust.h"
#include "foretrace/version.h"
#include "question/sweep/columns.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kBarWidth = 20;
constexpr std::size_t kMaxFigures = 4;

std::string value_of(const SweepPoint& point) { return plain_value(point.values.front()); }

/// Returns the name of a figure without its transform, which is the same for all.
std::string figure_name(const SweepFigure& figure) {
  return figure.name.substr(figure.name.find('.') + 1);
}

/// Returns the point as in a file of answers, plus what depends on the other points. Columns
/// without a value are null.
Json curve_point_json(const Curve& curve, const SweepPoint& point) {
  Json object = parse_json<Json>(json_line(point_json(curve.header, point)));
  object["value"] = value_of(point);
  if (!point.refused.empty()) return object;
  for (const PointColumn* column : columns_of(curve.header)) object.emplace(column->key, nullptr);
  object["satisfies"] = curve.satisfies(point);
  Json& figures = object["figures"] = Json::object();
  for (const SweepFigure& figure : point.figures)
    figures[figure_name(figure)] = parse_json<Json>(figure.value);
  return object;
}

std::string remark(const SweepPoint& point) {
  if (!point.refused.empty()) return "refused: " + point.refused;
  std::string text;
  const auto add = [&](std::string_view word) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  };
  if (!point.fits.value_or(true)) add("out of memory");
  if (!point.verdicts.empty())
    add(point.verdicts.front() == "fails" ? "does not hold" : point.verdicts.front());
  if (point.on_front.value_or(false)) add("best of its size");
  return text;
}

/// Adds a column of results and, if `bar` is set, a bar of each relative to the largest.
void add_column(const Curve& curve, const PointColumn& column, bool bar, Table& table) {
  double longest = 0;
  const auto size_of = [&](const SweepPoint& point) {
    const auto value = column.value(point);
    return value.is_null() ? 0 : value.get<double>();
  };
  for (const SweepPoint& point : curve.points) longest = std::max(longest, size_of(point));
  table.heading.push_back(column_title(column, curve.header));
  if (bar) {
    table.left.push_back(table.heading.size());
    table.heading.emplace_back("");
  }
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    table.rows[i].push_back(value_text(column.key, column.value(curve.points[i])));
    const double share = longest > 0 ? size_of(curve.points[i]) / longest : 0;
    if (bar) table.rows[i].emplace_back(static_cast<std::size_t>(share * kBarWidth + 0.5), '#');
  }
}

/// Returns the table of all points, in which the answer and the points of the front are marked.
Table table_of(const Curve& curve, bool bars) {
  Table table{.heading = {curve.setting()}, .rows = {}};
  for (std::size_t i = 0; i < curve.points.size(); ++i)
    table.rows.push_back({(curve.answer == i ? "> " : "  ") + value_of(curve.points[i])});
  const std::vector<const PointColumn*> columns = table_columns(curve);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    // There is one bar for time and one for memory, each after the last of its columns.
    const bool is_last =
        i + 1 == columns.size() || unit_of_key(columns[i + 1]->key) != unit_of_key(columns[i]->key);
    add_column(curve, *columns[i], bars && is_last, table);
  }
  table.left.push_back(table.heading.size());
  table.heading.emplace_back("");
  for (std::size_t i = 0; i < curve.points.size(); ++i)
    table.rows[i].push_back(remark(curve.points[i]));
  return table;
}

/// Returns the figures of the varied step at each point; empty if there are none.
Table figure_table(const Curve& curve) {
  Table table;
  const auto first = std::find_if(curve.points.begin(), curve.points.end(),
                                  [](const auto& point) { return !point.figures.empty(); });
  if (first == curve.points.end()) return table;
  table.heading = {curve.setting()};
  for (const SweepPoint& point : curve.points) table.rows.push_back({"  " + value_of(point)});
  for (std::size_t n = 0; n < std::min(kMaxFigures, first->figures.size()); ++n) {
    const std::string& name = first->figures[n].name;
    std::string title(without_unit(figure_name(first->figures[n])));
    std::replace(title.begin(), title.end(), '_', ' ');
    table.heading.push_back(title);
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      const auto& figures = curve.points[i].figures;
      const auto found = std::find_if(figures.begin(), figures.end(),
                                      [&](const SweepFigure& one) { return one.name == name; });
      table.rows[i].push_back(found == figures.end()
                                  ? "-"
                                  : value_text(name, parse_json<PointColumn::Json>(found->value)));
    }
  }
  return table;
}

/// Plots step times over the values of the setting, with intervals; empty if they are no numbers.
std::string curve_plot(const Curve& curve) {
  Plot plot{.x = {.title = curve.setting(),
                  .label = [](double value) { return to_text(value); },
                  .is_linear = true},
            .y = {.title = "step",
                  .label = [](double time) { return to_text(from_nanoseconds(time)); },
                  .is_linear = true,
                  .from = 0},
            .described = "Step times over values; the table below has the same",
            .lines = {{}},
            .is_low = true};
  const auto time_of = [](Nanoseconds time) { return static_cast<double>(time.count()); };
  PlotLine& line = plot.lines.front();
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const SweepPoint& point = curve.points[i];
    const auto value = parse_json<Json>(point.values.front());
    if (!value.is_number()) return {};
    if (!point.refused.empty()) continue;
    const double x = value.get<double>(), y = time_of(point.step_time);
    line.points.emplace_back(x, y);
    if (point.lower && point.upper)
      line.band.push_back({x, time_of(*point.lower), time_of(*point.upper)});
    const std::string why = remark(point);
    plot.dots.push_back(
        {.x = x,
         .y = y,
         .name = curve.answer == i ? value_of(point) : "",
         .tooltip = fmt::format("{}: {}{}{}", value_of(point), to_text(point.step_time),
                                why.empty() ? "" : ", ", why),
         .colour = point.fits.value_or(true) && curve.satisfies(point) ? 0U : 3U});
  }
  if (line.points.size() < 2) return {};
  line.name = line.band.empty() ? "predicted" : "predicted, with its interval";
  if (const auto& now = curve.header.baseline_step_time)
    plot.lines.push_back({.name = "now",
                          .colour = 1,
                          .is_dashed = true,
                          .points = {{line.points.front().first, time_of(*now)},
                                     {line.points.back().first, time_of(*now)}}});
  const bool fails =
      std::ranges::any_of(plot.dots, [](const PlotDot& dot) { return dot.colour != 0; });
  return html_plot(std::move(plot)) +
         (fails
              ? "<p class=\"quiet\">Red dots do not fit or do not hold; the table says which.</p>\n"
              : "");
}

std::string question_text(const Curve& curve) {
  std::string text;
  for (const std::string& use : curve.uses) text += (text.empty() ? "" : ", then ") + use;
  return fmt::format("{}{} from {} to {}", text.empty() ? "" : text + ", ", curve.setting(),
                     value_of(curve.points.front()), value_of(curve.points.back()));
}

std::string now_text(const SweepHeader& header) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (header.has_times && header.baseline_step_time)
    add(to_text(*header.baseline_step_time) +
        (header.has_steps ? " a step" : " for the whole recording"));
  if (header.baseline_allocated) add(to_text(*header.baseline_allocated) + " allocated");
  if (header.baseline_reserved) add(to_text(*header.baseline_reserved) + " reserved");
  return text;
}

}  // namespace

Json to_json(const Curve& curve) {
  const SweepHeader& header = curve.header;
  Json points = Json::array();
  for (const SweepPoint& point : curve.points) points.push_back(curve_point_json(curve, point));
  Json object = {{"schema", "foretrace.curve/1"},
                 {"tool", {{"name", "foretrace"}, {"version", kVersion}}},
                 {"inputs", inputs_json(header.inputs)},
                 {"setting", curve.setting()},
                 {"uses", curve.uses},
                 {"baseline",
                  {{"step_time_ns", header.baseline_step_time.value_or(0ns).count()},
                   {"peak_allocated_bytes", header.baseline_allocated},
                   {"peak_reserved_bytes", header.baseline_reserved}}},
                 {"points", points},
                 {"trust", to_json(curve.trust)},
                 {"notes", notes_json(curve.notes)}};
  if (!curve.until().empty()) {
    object["until"] = curve.until();
    object["answer"] = curve.answer ? Json(value_of(curve.points[*curve.answer])) : Json(nullptr);
    object["answer_text"] = curve.answer_text;
  }
  return object;
}

void write_csv(const Curve& curve, std::ostream& out) {
  out << sweep_csv_heading(curve.header);
  for (const SweepPoint& point : curve.points)
    out << sweep_point_line(curve.header, point, SweepForm::csv);
}

Document document_of(const Curve& curve) {
  using enum Document::Heading;
  Document document("Curve", question_text(curve));
  document.verdict("Trust", trust_warning(curve.trust));
  document.say("What if", question_text(curve)).say("Now", now_text(curve.header));
  if (!curve.until().empty())
    document.verdict("Answer", fmt::format("{} {}", curve.until(), curve.answer_text));
  document.section("Points", not_in_text);
  if (curve.header.has_times)
    document.draw({[&curve] { return Picture::Made{curve_plot(curve)}; }});
  document.table(table_of(curve, true));
  document.section("Figures", not_in_text).table(figure_table(curve));
  for (const Note& note : curve.notes.all()) document.section("").items({note_text(note)});
  return document;
}

}  // namespace foretrace
