// Predictions and their outcomes, as text, Markdown and JSON.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_values.h"
#include "base/shown.h"
#include "base/statistics.h"
#include "document/document.h"
#include "document/words/table.h"
#include "foretrace/answer/pairs.h"
#include "foretrace/units.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

std::string outcome_text(const PairRow& row, std::int64_t value) {
  if (row.compared == Compared::step_time) return to_text(Nanoseconds(value));
  return to_text(Bytes{value});
}

std::string inside_text(const PairRow& row) {
  if (!row.inside) return "-";
  return *row.inside ? "yes" : "no";
}

std::string name_text(const PairRow& row) {
  std::string text = row.name;
  if (row.compared != Compared::step_time) text += fmt::format(", {}", to_string(row.compared));
  if (row.fitted) text += " (fitted)";
  if (row.synthetic) text += " (synthetic)";
  return text;
}

std::string uses_text(const PairRow& row) {
  std::string text;
  for (const std::string& use : row.uses) text += (text.empty() ? "" : "; ") + use;
  return text;
}

Table row_table(const PairsReport& report) {
  Table table{
      .heading = {"what changed", "asked as", "before", "predicted", "recorded", "error", "inside"},
      .rows = {},
      .left = {0, 1},
      .code = {1}};
  for (const PairRow& row : report.rows) {
    if (!row.problem.empty()) continue;
    table.rows.push_back({name_text(row), uses_text(row), outcome_text(row, row.before),
                          outcome_text(row, row.predicted), outcome_text(row, row.recorded),
                          to_percent(row.error), inside_text(row)});
  }
  return table;
}

Table kind_table(const PairsReport& report) {
  Table table{
      .heading = {"kind of what-if", "compared", "pairs", "median error", "worst", "inside"},
      .rows = {},
      .left = {0, 1}};
  for (const PairKind& kind : report.kinds) {
    table.rows.push_back(
        {kind.kind, std::string(to_string(kind.compared)), std::to_string(kind.count),
         to_share(kind.median_error), to_share(kind.worst_error),
         kind.intervals == 0 ? "-" : fmt::format("{} of {}", kind.inside, kind.intervals)});
  }
  return table;
}

std::size_t answered(const PairsReport& report) {
  return report.rows.size() - report.missing - report.refused;
}

std::string_view have(std::size_t count) { return count == 1 ? "has" : "have"; }

/// Returns the verdict in one sentence.
std::string summary(const PairsReport& report) {
  std::string text = counted(answered(report), "pair") + " compared";
  for (const PairKind& kind : report.kinds) {
    if (kind.kind != "all" || kind.compared != Compared::step_time) continue;
    text += fmt::format(
        "; step times are off by {} (median), {} at worst, and {} of {} are inside the interval",
        to_share(kind.median_error), to_share(kind.worst_error), kind.inside, kind.intervals);
  }
  if (report.missing > 0)
    text += fmt::format("; {} {} no recording", report.missing, have(report.missing));
  if (report.refused > 0)
    text += fmt::format("; {} {} no answer", report.refused, have(report.refused));
  return text;
}

std::vector<std::string> problems(const PairsReport& report) {
  std::vector<std::string> all;
  for (const PairRow& row : report.rows) {
    if (!row.problem.empty()) all.push_back(fmt::format("{}: {}", name_text(row), row.problem));
  }
  return all;
}

Json row_json(const PairRow& row) {
  Json object = {{"name", row.name},     {"with", row.uses},
                 {"class", row.kind},    {"compare", to_string(row.compared)},
                 {"fitted", row.fitted}, {"synthetic", row.synthetic}};
  if (!row.problem.empty()) {
    object["problem"] = row.problem;
    object["missing"] = row.missing;
    return object;
  }
  const std::string unit = row.compared == Compared::step_time ? "_ns" : "_bytes";
  object["before" + unit] = row.before;
  object["predicted" + unit] = row.predicted;
  object["recorded" + unit] = row.recorded;
  object["error"] = row.error;
  object["inside"] = row.inside;
  if (row.inside) {
    object["lower" + unit] = row.lower;
    object["upper" + unit] = row.upper;
  }
  return object;
}

Json kind_json(const PairKind& kind) {
  return {{"class", kind.kind},
          {"compare", to_string(kind.compared)},
          {"pairs", kind.count},
          {"median_error", kind.median_error},
          {"worst_error", kind.worst_error},
          {"intervals", kind.intervals},
          {"inside", kind.inside}};
}

PairKind kind_of_rows(const std::string& name, const std::vector<const PairRow*>& rows) {
  PairKind kind{.kind = name, .compared = rows.front()->compared};
  std::vector<double> errors;
  for (const PairRow* row : rows) {
    errors.push_back(std::abs(row->error));
    kind.intervals += row->inside.has_value() ? 1 : 0;
    kind.inside += row->inside.value_or(false) ? 1 : 0;
  }
  kind.count = rows.size();
  kind.worst_error = *std::max_element(errors.begin(), errors.end());
  kind.median_error = median(std::move(errors));
  return kind;
}

}  // namespace

std::string_view to_string(Compared compared) {
  switch (compared) {
    case Compared::step_time:
      return "step_time";
    case Compared::peak_allocated:
      return "peak_allocated";
    case Compared::peak_reserved:
      return "peak_reserved";
  }
  return {};
}

void sum_up(PairsReport& report) {
  report.kinds.clear();
  report.missing = report.refused = 0;
  std::map<std::pair<std::string, Compared>, std::vector<const PairRow*>> kinds;
  std::map<Compared, std::vector<const PairRow*>> all;
  for (const PairRow& row : report.rows) {
    if (!row.problem.empty()) {
      ++(row.missing ? report.missing : report.refused);
      continue;
    }
    kinds[{row.kind, row.compared}].push_back(&row);
    all[row.compared].push_back(&row);
  }
  for (const auto& [key, rows] : kinds) report.kinds.push_back(kind_of_rows(key.first, rows));
  for (const auto& [key, rows] : all) report.kinds.push_back(kind_of_rows("all", rows));
}

Json to_json(const PairsReport& report) {
  Json rows = Json::array(), kinds = Json::array();
  for (const PairRow& row : report.rows) rows.push_back(row_json(row));
  for (const PairKind& kind : report.kinds) kinds.push_back(kind_json(kind));
  return {{"schema", "foretrace.pair_validation/1"},
          {"tool", {{"name", "foretrace"}, {"version", kVersion}}},
          {"lists", report.lists},
          {"pairs", std::move(rows)},
          {"classes", std::move(kinds)},
          {"missing", report.missing},
          {"refused", report.refused},
          {"notes", notes_json(report.notes)}};
}

Document document_of(const PairsReport& report) {
  using enum Document::Heading;
  Document document("Pairs");
  document.verdict("", summary(report));
  document.section("Pairs", not_in_text).table(row_table(report));
  document.section("Kinds", not_in_text).table(kind_table(report));
  return document.list("Problems", problems(report)).notes(report.notes);
}

}  // namespace foretrace
