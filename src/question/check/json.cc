// The answer for programs: JSON with everything, and the formats that benchmark trackers read.

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_text.h"
#include "base/json_values.h"
#include "foretrace/answer/check.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"
#include "question/words/step_facts.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Words for a unit; indexed by FigureUnit.
struct UnitWords {
  const char *suffix, *benchmark;
  const char* measure;  ///< Bencher's name of the kind of measurement.
};
constexpr UnitWords kUnitWords[] = {{"_ns", "ns", "latency"},
                                    {"_bytes", "B", "bytes"},
                                    {"", "count", "count"},
                                    {"", "share", "share"}};

const UnitWords& words_of(const CheckedFigure& figure) {
  return kUnitWords[static_cast<std::size_t>(figure.unit)];
}

Json value_json(FigureUnit unit, std::int64_t value) {
  if (unit == FigureUnit::share) return static_cast<double>(value) / 1'000'000;
  return value;
}

Json figure_json(const CheckedFigure& figure) {
  const std::string suffix = words_of(figure).suffix;
  Json object = {{"name", figure.name},
                 {"says", figure.says},
                 {"standing", to_string(figure.standing)},
                 {"worse", figure.less_is_worse ? "less" : "more"},
                 {"limit", figure.limit},
                 {"warn_limit", figure.warn_limit},
                 {"why", figure.why}};
  object["before" + suffix] = figure.before ? value_json(figure.unit, *figure.before) : Json();
  object["after" + suffix] = figure.after ? value_json(figure.unit, *figure.after) : Json();
  object["change_lower" + suffix] = value_json(figure.unit, figure.lower);
  object["change_upper" + suffix] = value_json(figure.unit, figure.upper);
  if (figure.before && figure.after && *figure.before != 0)
    object["change"] = static_cast<double>(*figure.after - *figure.before) /
                       std::abs(static_cast<double>(*figure.before));
  return object;
}

Json cause_json(const CheckCause& cause) {
  Json object = {{"what", cause.what},
                 {"where", cause.where},
                 {"kind", cause.kind},
                 {"metric", cause.figure},
                 {"local_ns", cause.local.count()},
                 {"bytes", cause.bytes.count},
                 {"count_before", cause.count_before},
                 {"count_after", cause.count_after}};
  object["effect_ns"] = cause.effect;
  object["file"] = unless_default(cause.file);
  object["line"] = unless_default(cause.line);
  return object;
}

Json visible_json(const std::optional<VisibleChange>& visible) {
  if (!visible) return {};
  return {{"share", visible->share},
          {"recordings", visible->recordings},
          {"wanted_share", VisibleChange::kWanted},
          {"recordings_for_wanted", visible->for_wanted}};
}

std::string tracked_name(const CheckReport& report, const CheckedFigure& figure) {
  return report.scenario == "as recorded" ? figure.name
                                          : fmt::format("{}: {}", report.scenario, figure.name);
}

}  // namespace

Json to_json(const CheckReport& report) {
  Json object = {{"schema", "foretrace.check/1"},
                 {"tool", {{"version", kVersion}}},
                 {"inputs", inputs_json(report.inputs)},
                 {"baseline", report.baseline},
                 {"scenario", report.scenario},
                 {"standing", to_string(report.standing())},
                 {"headline", check_headline(report)},
                 {"trust", to_json(report.trust)},
                 {"structure_only", report.structure_only},
                 {"same_structure", report.same_structure},
                 {"visible", visible_json(report.visible)},
                 {"notes", notes_json(report.notes)},
                 {"metrics", Json::array()},
                 {"causes", Json::array()}};
  object["left_ns"] = report.left;
  add_step_facts(report.steps, object["measured"]);
  for (const CheckedFigure& figure : report.figures)
    object["metrics"].push_back(figure_json(figure));
  for (const CheckCause& cause : report.causes) object["causes"].push_back(cause_json(cause));
  return object;
}

void write_check_bencher(const CheckReport& report, std::ostream& out) {
  Json names = Json::object();
  for (const CheckedFigure& figure : report.figures) {
    if (!figure.after) continue;
    Json& entry = names[tracked_name(report, figure)][words_of(figure).measure];
    entry["value"] = value_json(figure.unit, *figure.after);
    if (!figure.before || figure.standing == CheckOutcome::left_out) continue;
    entry["lower_value"] = value_json(figure.unit, *figure.before + figure.lower);
    entry["upper_value"] = value_json(figure.unit, *figure.before + figure.upper);
  }
  out << indented_json(names) << '\n';
}

void write_check_benchmark(const CheckReport& report, std::ostream& out) {
  Json list = Json::array();
  for (const CheckedFigure& figure : report.figures) {
    // Leave out metrics of which more is better: the tool treats smaller values as better.
    if (!figure.after || figure.less_is_worse) continue;
    Json entry = {{"name", tracked_name(report, figure)},
                  {"unit", words_of(figure).benchmark},
                  {"value", value_json(figure.unit, *figure.after)},
                  {"extra", figure.says}};
    if (figure.standing != CheckOutcome::left_out)
      entry["range"] = figure_text(figure.unit, (figure.upper - figure.lower) / 2);
    list.push_back(std::move(entry));
  }
  out << indented_json(list) << '\n';
}

}  // namespace foretrace
