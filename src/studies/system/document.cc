// The replay of a described system, as text and JSON.

#include "document/document.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "base/shown.h"
#include "base/wording.h"
#include "foretrace/units.h"
#include "foretrace/version.h"
#include "studies/system/system.h"

namespace foretrace {
namespace {

std::string seconds_text(double seconds) { return to_text(from_microseconds(seconds * 1e6)); }

/// Formats a number with five significant digits.
std::string short_number(double value) {
  if (value == 0) return "0";
  const double step = std::pow(10., std::floor(std::log10(std::abs(value))) - 4);
  return to_text(step < 1 ? std::round(value / step) / std::round(1 / step)
                          : std::round(value / step) * step);
}

Table table_of(const SystemReport& report) {
  std::set<std::string> names;
  for (const SystemRow& row : report.rows) {
    for (const auto& [name, value] : row.settings) names.insert(name);
  }
  Table table{.heading = {names.begin(), names.end()}, .rows = {}, .left = {}};
  if (report.has_tasks) table.heading.emplace_back("time");
  for (const auto& [name, value] : report.rows.front().figures) table.heading.push_back(name);
  for (const SystemRow& row : report.rows) {
    std::vector<std::string> cells;
    for (const std::string& name : names) {
      const auto found = row.settings.find(name);
      cells.push_back(found == row.settings.end() ? "-" : to_text(found->second));
    }
    if (report.has_tasks) cells.push_back(seconds_text(row.seconds));
    for (const auto& [name, value] : row.figures) cells.push_back(short_number(value));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::size_t held(const PublishedFigure& published, const std::vector<double>& values) {
  return static_cast<std::size_t>(
      std::ranges::count_if(values, [&](double value) { return published.holds(value); }));
}

/// Each published figure beside those of all rows.
Table published_table(const SystemReport& report) {
  Table table{
      .heading = {"figure", "published", "here", "off by", "in range"}, .rows = {}, .left = {0, 4}};
  for (const PublishedFigure& published : report.published) {
    const std::vector<double> values = report.values(published.name);
    const auto [least, most] = std::ranges::minmax(values);
    const std::size_t in_range = held(published, values);
    const bool is_one = values.size() == 1;
    table.rows.push_back(
        {published.name, short_number(published.value),
         is_one ? short_number(least)
                : fmt::format("{} to {}", short_number(least), short_number(most)),
         is_one ? fmt::format("{:+.0f} %", 100 * (least / published.value - 1)) : "",
         is_one ? (in_range > 0 ? "yes" : "no")
                : fmt::format("{} of {} rows", in_range, values.size())});
  }
  return table;
}

/// Why figures are out of range.
std::vector<std::string> causes(const SystemReport& report) {
  std::vector<std::string> lines;
  for (const PublishedFigure& published : report.published) {
    const std::vector<double> values = report.values(published.name);
    if (!published.why.empty() && held(published, values) < values.size())
      lines.push_back(published.name + ": " + published.why);
  }
  return lines;
}

nlohmann::json published_json(const SystemReport& report) {
  nlohmann::json all = nlohmann::json::array();
  for (const PublishedFigure& published : report.published) {
    const std::vector<double> values = report.values(published.name);
    all.push_back({{"figure", published.name},
                   {"published", published.value},
                   {"within", published.within},
                   {"found", values},
                   {"in_range", held(published, values)},
                   {"why", published.why}});
  }
  return all;
}

std::vector<std::string> failures(const SystemReport& report) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    for (const std::string& one : report.rows[i].failed)
      lines.push_back((report.rows.size() > 1 ? fmt::format("row {}: ", i + 1) : "") + one);
  }
  for (const std::string& one : report.failed) lines.push_back("over all rows: " + one);
  return lines;
}

nlohmann::json numbers_json(const std::vector<std::pair<std::string, double>>& numbers) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [name, value] : numbers) all[name] = value;
  return all;
}

}  // namespace

bool SystemReport::holds() const {
  return failed.empty() &&
         std::ranges::all_of(rows, [](const SystemRow& row) { return row.failed.empty(); });
}

bool PublishedFigure::holds(double found) const {
  return std::abs(found - value) <= within * std::abs(value);
}

std::vector<double> SystemReport::values(const std::string& figure) const {
  std::vector<double> all;
  for (const SystemRow& row : rows) {
    for (const auto& [name, value] : row.figures) {
      if (name == figure) all.push_back(value);
    }
  }
  return all;
}

nlohmann::json to_json(const SystemReport& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const SystemRow& row : report.rows)
    rows.push_back({{"settings", row.settings},
                    {"time_s", row.seconds},
                    {"figures", numbers_json(row.figures)},
                    {"tasks", row.tasks},
                    {"searched", row.tried},
                    {"failed", row.failed}});
  return {{"schema", "foretrace.system/1"},
          {"tool", {{"version", kVersion}}},
          {"title", report.title},
          {"rows", rows},
          {"means", numbers_json(report.means)},
          {"failed", report.failed},
          {"published", published_json(report)},
          {"assumptions", report.assumptions},
          {"holds", report.holds()}};
}

Document document_of(const SystemReport& report) {
  Document document("System");
  document.say(report.title).titled("", table_of(report));
  if (report.rows.front().tried > 0)
    document.section("").say(
        fmt::format("the best of {} allowed points", grouped(report.rows.front().tried)));
  std::vector<std::string> means;
  for (const auto& [name, value] : report.means)
    means.push_back(fmt::format("{} {}", name, short_number(value)));
  document.sum_up(report.holds() ? "" : joined(failures(report)));
  return document.list("geometric means over the rows:", means)
      .titled("published:", published_table(report))
      .list("out of range:", causes(report))
      .list("assumed:", report.assumptions)
      .list("assertions that do not hold:", failures(report));
}

}  // namespace foretrace
