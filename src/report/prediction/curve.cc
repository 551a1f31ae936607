// Time and memory of a what-if while one of its settings varies.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "foretrace/report.h"
#include "foretrace/version.h"
#include "report/words/csv_text.h"
#include "report/words/json_text.h"
#include "report/words/table.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kBarWidth = 20;
constexpr std::size_t kMostFigures = 4;

std::string bytes_text(const std::optional<Bytes>& bytes) { return bytes ? to_text(*bytes) : "-"; }

Json point_json(const CurvePoint& point) {
  Json object = {{"value", point.value}};
  if (!point.refused.empty()) {
    object["refused"] = point.refused;
    return object;
  }
  object["step_time_ns"] = point.step_time.count();
  object["peak_allocated_bytes"] = bytes_json(point.peak_allocated);
  object["peak_reserved_bytes"] = bytes_json(point.peak_reserved);
  object["fits"] = point.fits;
  object["satisfies"] = point.satisfies;
  object["on_front"] = point.on_front;
  object["trust"] = to_string(point.trust.grade());
  object["figures"] = figures_json(point.figures);
  return object;
}

/// Long next to the longest.
std::string bar(double size, double longest) {
  if (longest <= 0) return {};
  const double share = std::clamp(size / longest, 0.0, 1.0);
  return std::string(static_cast<std::size_t>(share * kBarWidth + 0.5), '#');
}

/// Marks before a value: the answer, and the front.
std::string marked(const Curve& curve, std::size_t i) {
  std::string text = curve.answer == i ? "> " : "  ";
  return text + curve.points[i].value;
}

std::string remark(const Curve& curve, const CurvePoint& point) {
  if (!point.refused.empty()) return "refused: " + point.refused;
  std::string text;
  const auto add = [&](std::string_view word) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  };
  if (!point.fits) add("out of memory");
  if (!curve.until.empty()) add(point.satisfies ? "holds" : "does not hold");
  if (point.on_front) add("best of its size");
  return text;
}

bool has_memory(const Curve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(),
                     [](const CurvePoint& point) { return point.peak_allocated.has_value(); });
}

/// Its columns; which of them are texts and bars.
void add_heading(const Curve& curve, bool memory, bool bars, Table& table) {
  const auto add_bars = [&] {
    if (!bars) return;
    table.left.push_back(table.heading.size());
    table.heading.emplace_back("");
  };
  table.heading = {curve.setting};
  table.left = {0};
  if (curve.has_times) {
    table.heading.emplace_back(curve.has_steps ? "step" : "recording");
    add_bars();
  }
  if (memory) {
    table.heading.insert(table.heading.end(), {"allocated", "reserved"});
    add_bars();
  }
  table.left.push_back(table.heading.size());
  table.heading.emplace_back("");
}

Table table_of(const Curve& curve, bool bars) {
  Table table;
  const bool memory = has_memory(curve);
  add_heading(curve, memory, bars, table);
  double longest = 0, largest = 0;
  for (const CurvePoint& point : curve.points) {
    longest = std::max(longest, static_cast<double>(point.step_time.count()));
    largest = std::max(largest, static_cast<double>(point.peak_allocated.value_or(Bytes{}).count));
  }
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const CurvePoint& point = curve.points[i];
    const bool known = point.refused.empty();
    std::vector<std::string> row = {marked(curve, i)};
    if (curve.has_times) {
      row.push_back(known ? to_text(point.step_time) : "-");
      if (bars) row.push_back(bar(static_cast<double>(point.step_time.count()), longest));
    }
    if (memory) {
      row.push_back(bytes_text(point.peak_allocated));
      row.push_back(bytes_text(point.peak_reserved));
      if (bars)
        row.push_back(
            bar(static_cast<double>(point.peak_allocated.value_or(Bytes{}).count), largest));
    }
    row.push_back(remark(curve, point));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The figures of the step that varies, where they do.
Table figure_table(const Curve& curve) {
  Table table;
  const auto first = std::find_if(curve.points.begin(), curve.points.end(),
                                  [](const auto& point) { return !point.figures.empty(); });
  if (first == curve.points.end()) return table;
  table.heading = {curve.setting};
  std::vector<std::string> names;
  for (const Figure& figure : first->figures) {
    if (names.size() == kMostFigures) break;
    names.push_back(figure.name);
    std::string title = figure.name;
    std::replace(title.begin(), title.end(), '_', ' ');
    table.heading.push_back(title);
  }
  for (const CurvePoint& point : curve.points) {
    std::vector<std::string> row = {"  " + point.value};
    for (const std::string& name : names) {
      const auto found = std::find_if(point.figures.begin(), point.figures.end(),
                                      [&](const Figure& figure) { return figure.name == name; });
      row.push_back(found == point.figures.end() ? "-" : to_text(*found));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string question(const Curve& curve) {
  std::string text;
  for (const std::string& use : curve.uses) text += (text.empty() ? "" : ", then ") + use;
  return (text.empty() ? "" : text + ", ") + curve.setting + " from " + curve.points.front().value +
         " to " + curve.points.back().value;
}

std::string now_text(const Curve& curve) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (curve.has_times)
    add(to_text(curve.baseline_step_time) +
        (curve.has_steps ? " a step" : " for the whole recording"));
  if (curve.baseline_allocated) add(to_text(*curve.baseline_allocated) + " allocated");
  if (curve.baseline_reserved) add(to_text(*curve.baseline_reserved) + " reserved");
  return text;
}

}  // namespace

Json to_json(const Curve& curve) {
  Json points = Json::array();
  for (const CurvePoint& point : curve.points) points.push_back(point_json(point));
  Json object = {{"schema", "foretrace.curve/1"},
                 {"tool", {{"name", "foretrace"}, {"version", kVersion}}},
                 {"inputs", inputs_json(curve.inputs)},
                 {"setting", curve.setting},
                 {"uses", curve.uses},
                 {"baseline",
                  {{"step_time_ns", curve.baseline_step_time.count()},
                   {"peak_allocated_bytes", bytes_json(curve.baseline_allocated)},
                   {"peak_reserved_bytes", bytes_json(curve.baseline_reserved)}}},
                 {"points", points},
                 {"trust", to_json(curve.trust)},
                 {"notes", notes_json(curve.notes)}};
  if (!curve.until.empty()) {
    object["until"] = curve.until;
    object["answer"] = curve.answer ? Json(curve.points[*curve.answer].value) : Json(nullptr);
    object["answer_text"] = curve.answer_text;
  }
  return object;
}

void write_curve_text(const Curve& curve, std::ostream& out) {
  if (const std::string warning = trust_warning(curve.trust); !warning.empty())
    out << "Trust         " << shown(warning) << '\n';
  out << "What if       " << shown(question(curve)) << '\n';
  out << "Now           " << now_text(curve) << '\n';
  if (!curve.until.empty())
    out << "Answer        " << shown(curve.until + " " + curve.answer_text) << '\n';
  out << '\n';
  write_aligned(table_of(curve, true), out);
  if (const Table figures = figure_table(curve); !figures.rows.empty()) {
    out << '\n';
    write_aligned(figures, out);
  }
  for (const Note& note : curve.notes.all()) out << "\n  - " << note_text(note) << '\n';
}

void write_curve_markdown(const Curve& curve, std::ostream& out) {
  out << markdown_trust(trust_warning(curve.trust));
  out << "### " << markdown_text(question(curve)) << "\n\n";
  if (!curve.until.empty())
    out << "**" << markdown_text(curve.until + " " + curve.answer_text) << "**\n\n";
  out << "Now " << now_text(curve) << ".\n\n";
  write_markdown_table(table_of(curve, false), out);
}

void write_curve_csv(const Curve& curve, std::ostream& out) {
  out << "value,step_time_ns,peak_allocated_bytes,peak_reserved_bytes,fits,satisfies,on_front,"
         "trust,refused\n";
  const auto bytes = [](const std::optional<Bytes>& level) {
    return level ? std::to_string(level->count) : std::string();
  };
  for (const CurvePoint& point : curve.points) {
    out << csv_text(point.value) << ',';
    if (point.refused.empty()) out << point.step_time.count();
    out << ',' << bytes(point.peak_allocated) << ',' << bytes(point.peak_reserved) << ','
        << point.fits << ',' << point.satisfies << ',' << point.on_front << ','
        << (point.refused.empty() ? to_string(point.trust.grade()) : "") << ','
        << csv_text(point.refused) << '\n';
  }
}

}  // namespace foretrace
