// A plan of how to serve a model, as text, JSON and CSV.

#include "document/document.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "base/wording.h"
#include "document/words/facts.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"
#include "studies/serve/serve_plan.h"

namespace foretrace {
namespace {

std::string speed(double per_second) { return to_fixed(per_second, per_second < 10 ? 2 : 0); }

Table ranked_table(const ServePlanReport& report) {
  Table table{.heading = {"GPUs"}, .rows = {}, .left = {}};
  for (const SloFigure& figure : report.ranked.front().figures)
    table.heading.push_back(figure.name), table.heading.emplace_back("up to");
  for (const char* name : {"SLO", "tokens/s a GPU", "cache"}) table.heading.emplace_back(name);
  if (!report.currency.empty()) table.heading.push_back(report.currency + " a million");
  table.heading.emplace_back("configuration");
  table.left = {table.heading.size() - 1};
  for (const ServePlanRow& row : report.ranked) {
    std::vector<std::string> cells = {grouped(row.gpus)};
    for (const SloFigure& figure : row.figures)
      cells.push_back(to_text(figure.typical)), cells.push_back(end_text(figure.interval.second));
    cells.emplace_back(to_text(row.verdict));
    cells.push_back(speed(row.point.output_tokens_per_second));
    cells.push_back(to_share(row.point.cache_mean, 0));
    if (!report.currency.empty()) cells.push_back(to_fixed(row.price.value_or(0), 2));
    cells.push_back(row.configuration + (row.is_same ? " (same)" : ""));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string fewer_line(const ServePlanRow& row) {
  const SloFigure& worst = *std::ranges::max_element(row.figures, {}, [](const SloFigure& figure) {
    return static_cast<double>(figure.typical.count()) / static_cast<double>(figure.limit.count());
  });
  return fmt::format("{}: {}, {} is {} of {} ({})", counted(row.gpus, "GPU"), to_text(row.verdict),
                     worst.name, to_text(worst.typical), to_text(worst.limit), row.configuration);
}

Facts placement_facts(const ServePlanRow& row) {
  const ServeQuestion& asked = row.asked;
  Facts facts;
  facts.fact("gpus", row.gpus)
      .fact("tensor", asked.tensor)
      .fact("data", asked.data)
      .fact("expert", asked.expert)
      .fact("replicas", asked.replicas)
      .fact("prefill_replicas", asked.prefill_replicas)
      .fact("cache", asked.cache)
      .fact("max_num_seqs", row.max_sequences)
      .fact("max_num_batched_tokens", row.max_tokens)
      .fact("slo", to_text(row.verdict))
      .detail("figures", to_json(row.figures));
  for (const SloFigure& figure : row.figures)
    facts.column(figure.name + "_ns", figure.typical)
        .column(figure.name + "_lower_ns", figure.interval.first)
        .column(figure.name + "_upper_ns", end_json(figure.interval.second));
  facts.detail("requests_per_second", row.point.requests_per_second)
      .fact("output_tokens_per_second_per_gpu", row.point.output_tokens_per_second)
      .detail("lower_output_tokens_per_second_per_gpu", row.point.lower_output_tokens)
      .detail("upper_output_tokens_per_second_per_gpu", row.point.upper_output_tokens)
      .fact("cache_mean", row.point.cache_mean)
      .detail("cache_peak", row.point.cache_peak)
      .fact("price_of_a_million_output_tokens", row.price)
      .detail("bound", row.point.bound)
      .fact("covered", row.point.is_covered)
      .detail("basis", row.point.basis)
      .detail("same_as_first", row.is_same);
  return facts;
}

}  // namespace

void write_csv(const ServePlanReport& report, std::ostream& out) {
  write_rows(report.ranked, placement_facts, out);
}

nlohmann::json to_json(const ServePlanReport& report) {
  nlohmann::json left_out = nlohmann::json::array();
  for (const auto& [why, what, count] : report.left_out)
    left_out.push_back({{"why", why}, {"what", what}, {"count", count}});
  return {{"schema", "foretrace.serving_plan/1"},
          {"tool", {{"version", kVersion}}},
          {"model", report.model},
          {"machine", report.machine},
          {"engine", report.engine},
          {"weights", report.weights},
          {"load", report.load},
          {"slo", report.slo},
          {"currency", report.currency},
          {"placements", report.placements},
          {"replayed", report.replayed},
          {"left_out", left_out},
          {"ranked", rows_json(report.ranked, placement_facts)},
          {"fewer_gpus", rows_json(report.fewer, placement_facts)},
          {"command", report.command},
          {"launch", report.launch},
          {"not_written", report.not_written},
          {"assumptions", report.assumptions}};
}

Document document_of(const ServePlanReport& report) {
  Document document("Plan of serving");
  const ServePlanRow& first = report.ranked.front();
  document.say(fmt::format("{} ({}) on {} with {}: {}", report.model, report.weights,
                           report.machine, report.engine, report.load));
  document.verdict("Cheapest",
                   fmt::format("{}: {}", counted(first.gpus, "GPU"), first.configuration));
  document.say("SLO", slo_sentence(first.figures));
  if (first.price)
    document.say("Price", fmt::format("{} {} a million output tokens", to_fixed(*first.price, 2),
                                      report.currency));
  document.section("Figures", Document::Heading::not_in_text);
  document.say("Bound by", first.point.bound);
  document.say(first.point.is_covered ? "Covered" : "Extrapolated", first.point.basis);
  document.say(
      "Searched",
      fmt::format("{} of a copy on up to {}; {} replayed", counted(report.placements, "placement"),
                  counted(report.most_gpus, "GPU"), counted(report.replayed, "configuration")));
  document.section("Configurations", Document::Heading::not_in_text).table(ranked_table(report));
  if (std::ranges::any_of(report.ranked, &ServePlanRow::is_same))
    document.section("").say("(same): differs from the first by less than the intervals of both");
  std::vector<std::string> fewer, left_out;
  for (const ServePlanRow& row : report.fewer) fewer.push_back(fewer_line(row));
  for (const auto& [why, what, count] : report.left_out)
    left_out.push_back(fmt::format("{}: {}", counted(count, what), why));
  document.list("with fewer GPUs:", fewer).list("left out:", left_out);
  document.list("how to run the cheapest:", {report.launch, report.command});
  document.list("not written:", report.not_written);
  return document.list("assumed:", report.assumptions);
}

}  // namespace foretrace
