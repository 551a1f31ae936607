// The summary of a sweep, as text and Markdown.

#include "document/document.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "document/words/table.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/answer/trust.h"
#include "foretrace/error.h"
#include "question/sweep/columns.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxOfFront = 12;

std::string settings_text(const SweepReport& report, const SweepPoint& point) {
  const std::vector<std::string> labels = setting_labels(report.header);
  std::string text;
  for (std::size_t i = 0; i < point.values.size(); ++i)
    text +=
        fmt::format("{}{}={}", text.empty() ? "" : ", ", labels[i], plain_value(point.values[i]));
  return text;
}

std::string counts_line(const SweepReport& report, const SweepSummary& summary) {
  std::string line = counted(report.points.size(), "question");
  if (report.header.shards > 1)
    line += fmt::format(" of shard {} of {}", report.header.shard, report.header.shards);
  line += fmt::format(": {} answered", grouped(summary.answered));
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0) line += fmt::format(", {} {}", grouped(count), what);
  };
  add(summary.refused, "refused");
  add(summary.unfit, "out of memory");
  add(summary.failed, "failing an assertion");
  return line;
}

std::string best_line(const SweepReport& report, const SweepSummary& summary) {
  const std::string part =
      report.header.shards > 1
          ? fmt::format(" of part {} of {}", report.header.shard, report.header.shards)
          : "";
  if (summary.answered == 0) return fmt::format("No question{} has an answer.", part);
  if (!summary.best) return "None of them fits and satisfies all assertions.";
  const SweepPoint& best = report.points[*summary.best];
  std::string line = fmt::format("Fastest{}: {} {}", part, to_text(best.step_time),
                                 report.header.has_steps ? "a step" : "in all");
  if (report.header.baseline_step_time)
    line += fmt::format(" ({}x of {})", to_fixed(best.speedup, 2),
                        to_text(*report.header.baseline_step_time));
  if (best.peak_reserved) line += fmt::format(", {} reserved", to_text(*best.peak_reserved));
  if (!best.peak_reserved && best.peak_allocated)
    line += fmt::format(", {} allocated", to_text(*best.peak_allocated));
  return fmt::format("{}, at {} (point {})", line, settings_text(report, best), best.number);
}

Table effect_table(const SweepReport& report, const SweepSummary& summary) {
  const std::vector<std::string>& settings = report.header.settings;
  const std::vector<std::string> labels = setting_labels(report.header);
  Table table;
  table.heading = {"setting", "moves it by", "share", "best"};
  table.left = {0, 3};
  for (const SweepEffect& effect : summary.effects) {
    const auto place = std::find(settings.begin(), settings.end(), effect.setting);
    CHECK(place != settings.end());
    const auto label = labels.begin() + (place - settings.begin());
    table.rows.push_back(
        {*label, to_text(effect.moves), to_share(effect.share), plain_value(effect.best)});
  }
  return table;
}

Table front_table(const SweepReport& report, const SweepSummary& summary) {
  Table table{.heading = {"point"}, .rows = {}, .left = {}};
  std::vector<const PointColumn*> columns = table_columns(report);
  const std::string_view other =
      summary.by_reserved ? "peak_allocated_bytes" : "peak_reserved_bytes";
  std::erase_if(columns, [&](const PointColumn* column) { return column->key == other; });
  for (const PointColumn* column : columns)
    table.heading.push_back(column_title(*column, report.header));
  for (const std::string& setting : setting_labels(report.header)) {
    table.left.push_back(table.heading.size());
    table.heading.push_back(setting);
  }
  for (const std::size_t i : summary.front) {
    if (table.rows.size() == kMaxOfFront) break;
    const SweepPoint& point = report.points[i];
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(std::to_string(point.number));
    for (const PointColumn* column : columns)
      row.push_back(value_text(column->key, column->value(point)));
    for (const std::string& value : point.values) row.push_back(plain_value(value));
  }
  return table;
}

std::string front_heading(const SweepSummary& summary) {
  const std::size_t shown = std::min(kMaxOfFront, summary.front.size());
  std::string text = "No other answer is both faster and smaller than these";
  if (shown < summary.front.size()) text += fmt::format(" ({} of {})", shown, summary.front.size());
  return text;
}

std::string refusal_line(const SweepRefusal& refusal) {
  return fmt::format("{}x {} (first: point {})", grouped(refusal.count), refusal.why,
                     refusal.first);
}

}  // namespace

Document document_of(const SweepReport& report) {
  using enum Document::Heading;
  const SweepSummary summary = summarize(report);
  Document document("sweep", counted(report.points.size(), "answer") + " of a sweep");
  if (const std::string warning = trust_warning(report.header.trust); !warning.empty())
    document.verdict("", "Trust is " + warning).section("");
  document.say(counts_line(report, summary)).sum_up(best_line(report, summary));
  document.section("Best", not_in_text).say(best_line(report, summary));
  document.section("What moves the step time, averaged over all other settings", titled_apart)
      .table(effect_table(report, summary), "", "  ");
  document.section(front_heading(summary), titled_apart)
      .table(front_table(report, summary), "", "  ");
  document.section("Refused", titled_apart).indent("  ");
  for (const SweepRefusal& refusal : summary.refusals) document.say(refusal_line(refusal));
  return document;
}

}  // namespace foretrace
