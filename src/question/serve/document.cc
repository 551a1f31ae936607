// Writes what a deployment does under a load, as text, JSON and CSV.

#include "document/document.h"

#include <algorithm>
#include <cctype>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/shown.h"
#include "base/wording.h"
#include "document/page/plot.h"
#include "document/words/facts.h"
#include "foretrace/answer/serving.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"

namespace foretrace {
namespace {

std::string speed(double per_second) { return to_fixed(per_second, per_second < 10 ? 2 : 0); }

/// With about three digits, as prices of tokens are often small.
std::string money(double price) {
  return to_fixed(price, price < .1 ? 4 : price < 10 ? 3 : price < 100 ? 2 : 1);
}

std::string price_sentence(const TokenPrice& price) {
  const auto ranged = [&](const RangedNumber& number, const char* tokens) {
    return fmt::format("{} {} for a million {}, {} to {}", money(number.point), price.currency,
                       tokens, money(number.lower), money(number.upper));
  };
  return fmt::format("{}; {}; at {} {} for a GPU and hour", ranged(price.output, "output tokens"),
                     ranged(price.all, "with prompts"), to_text(price.of_hour), price.currency);
}

std::string batch_plot(const ServingPoint& point) {
  PlotLine running{.name = "running"}, waiting{.name = "waiting", .colour = 1};
  for (const BatchSample& sample : point.batch) {
    const auto time = static_cast<double>(sample.time.count());
    running.points.emplace_back(time, static_cast<double>(sample.running));
    waiting.points.emplace_back(time, static_cast<double>(sample.waiting));
  }
  return html_plot(
      {.x = {.title = "time",
             .label = [](double ns) { return to_text(from_nanoseconds(ns)); },
             .is_linear = true},
       .y = {.title = "requests",
             .label = [](double count) { return to_fixed(count, 0); },
             .is_linear = true,
             .from = 0},
       .described = "Requests that run and that wait over time; the figures above have their means",
       .lines = {std::move(running), std::move(waiting)},
       .is_low = true});
}

std::string time_text(const LatencyFigure& figure, Nanoseconds time) {
  return figure.has_values ? to_text(time) : "-";
}

bool has_slo(const ServingReport& report) {
  return std::ranges::any_of(report.points,
                             [](const ServingPoint& point) { return !point.slo.empty(); });
}

void describe_point(const ServingReport& report, const ServingPoint& point, Document& document) {
  Table table{.heading = {"", "mean", "from", "to", "p50", "p90", "p99"}, .rows = {}, .left = {0}};
  for (const LatencyFigure& figure : point.latencies) {
    const auto end = [&](bool upper) {
      if (!figure.interval) return std::string();
      return end_text(upper ? figure.interval->second : figure.interval->first);
    };
    const auto time = [&](Nanoseconds of) { return time_text(figure, of); };
    table.rows.push_back({figure.name + ", " + figure.what, time(figure.mean), end(false),
                          end(true), time(figure.p50), time(figure.p90), time(figure.p99)});
  }
  document.section("Latency", Document::Heading::not_in_text).table(table);
  document.section("Figures", Document::Heading::not_in_text);
  document.say(
      "Throughput",
      fmt::format("{} requests a second; {} output tokens a second a GPU, {} to {}; {} with "
                  "prompts",
                  to_fixed(point.requests_per_second, 2), speed(point.output_tokens_per_second),
                  speed(point.lower_output_tokens), speed(point.upper_output_tokens),
                  speed(point.all_tokens_per_second)));
  if (point.price) document.say("Price", price_sentence(*point.price));
  if (point.goodput)
    document.say("Goodput", to_fixed(*point.goodput, 2) + " requests a second in demanded times");
  document.say("In flight",
               fmt::format("{} requests on average, {} of them waiting, at most {}; {}",
                           to_fixed(point.concurrency, 1), to_fixed(point.waiting_mean, 1),
                           point.waiting_peak, counted(point.preemptions, "preemption")));
  document.say(
      "Memory",
      fmt::format("weights {} a GPU, cache {} for {} tokens; {} of it used on average, at "
                  "most {}",
                  to_text(report.weights), to_text(report.cache), grouped(report.cache_tokens),
                  to_share(point.cache_mean, 0), to_share(point.cache_peak, 0)));
  if (!point.slo.empty()) document.say("SLO", slo_sentence(point.slo));
  document.say("Bound by", point.bound);
  document.say(point.is_covered ? "Covered" : "Extrapolated", point.basis);
  document.section("The batch over time", Document::Heading::not_in_text).draw({[&] {
    return Picture::Made{batch_plot(point)};
  }});
}

/// Latencies over throughput, in order of throughput.
std::string latency_plot(const ServingReport& report) {
  std::vector<PlotLine> lines = {{.name = "TTFT"},
                                 {.name = "TTFT p99", .is_dashed = true},
                                 {.name = "TPOT", .colour = 1},
                                 {.name = "TPOT p99", .colour = 1, .is_dashed = true}};
  for (const ServingPoint& point : report.points) {
    if (!point.refused.empty()) continue;
    const LatencyFigure& first = *point.latency("ttft");
    const LatencyFigure& per_token = *point.latency("tpot");
    const Nanoseconds times[] = {first.mean, first.p99, per_token.mean, per_token.p99};
    for (std::size_t i = 0; i < (per_token.has_values ? lines.size() : 2); ++i)
      lines[i].points.emplace_back(point.output_tokens_per_second,
                                   static_cast<double>(times[i].count()));
  }
  for (PlotLine& line : lines) std::ranges::sort(line.points);
  return html_plot(
      {.x = {.title = "output tokens a second a GPU", .label = speed},
       .y = {.title = "latency", .label = [](double ns) { return to_text(from_nanoseconds(ns)); }},
       .described = "Latency over output tokens a second a GPU; the table has the same numbers",
       .lines = std::move(lines)});
}

bool has_price(const ServingReport& report) {
  return std::ranges::any_of(report.points,
                             [](const ServingPoint& point) { return point.price.has_value(); });
}

void add_price_cells(const std::optional<TokenPrice>& price, std::vector<std::string>& cells) {
  if (!price) return cells.resize(cells.size() + 4);
  cells.push_back(money(price->output.point) + " " + price->currency);
  for (const double end : {price->output.lower, price->output.upper}) cells.push_back(money(end));
  cells.push_back(money(price->all.point) + " " + price->currency);
}

/// Points in a row that the same thing bounds; its share may change.
struct Bounds {
  std::string first, last;            ///< The points.
  std::string before, share, behind;  ///< The sentence around the first point's share.
  std::string last_share;

  explicit Bounds(const ServingPoint& point) : first(point.changed), last(point.changed) {
    const std::size_t end = std::min(point.bound.find(" %"), point.bound.size());
    std::size_t begin = end;
    while (begin > 0 && !std::isspace(static_cast<unsigned char>(point.bound[begin - 1]))) --begin;
    before = point.bound.substr(0, begin);
    share = last_share = point.bound.substr(begin, end - begin);
    behind = point.bound.substr(end) + (point.is_covered ? " (covered)" : " (extrapolated)");
  }

  bool goes_on(const Bounds& next) const { return before == next.before && behind == next.behind; }

  std::string text() const {
    return (first == last ? first : first + " to " + last) + ": " + before +
           (share == last_share ? share : share + " to " + last_share) + behind;
  }
};

void describe_points(const ServingReport& report, Document& document) {
  Table table{.heading = {"", "TTFT", "p99", "TPOT", "p99", "requests/s", "tokens/s a GPU", "from",
                          "to", "cache", "waiting"},
              .rows = {},
              .left = {0}};
  std::vector<std::string> refused;
  std::vector<Bounds> bounds;
  bool has_goodput = false;
  for (const ServingPoint& point : report.points) has_goodput |= point.goodput.has_value();
  if (has_goodput) table.heading.emplace_back("goodput/s");
  const bool is_priced = has_price(report), is_demanded = has_slo(report);
  if (is_priced)
    table.heading.insert(table.heading.end(), {"a million outputs", "from", "to", "with prompts"});
  if (is_demanded) table.heading.emplace_back("SLO");
  for (const ServingPoint& point : report.points) {
    if (!point.refused.empty()) {
      refused.push_back(point.changed + ": " + point.refused);
      continue;
    }
    const LatencyFigure& first = *point.latency("ttft");
    const LatencyFigure& per_token = *point.latency("tpot");
    table.rows.push_back({point.changed, to_text(first.mean), to_text(first.p99),
                          time_text(per_token, per_token.mean), time_text(per_token, per_token.p99),
                          to_fixed(point.requests_per_second, 2),
                          speed(point.output_tokens_per_second), speed(point.lower_output_tokens),
                          speed(point.upper_output_tokens), to_share(point.cache_mean, 0),
                          to_fixed(point.waiting_mean, 1)});
    if (has_goodput) table.rows.back().push_back(to_fixed(point.goodput.value_or(0), 2));
    if (is_priced) add_price_cells(point.price, table.rows.back());
    if (is_demanded) table.rows.back().emplace_back(to_text(verdict_of(point.slo)));
    const Bounds bound(point);
    if (bounds.empty() || !bounds.back().goes_on(bound)) bounds.push_back(bound);
    bounds.back().last = bound.last, bounds.back().last_share = bound.share;
  }
  std::vector<std::string> sentences;
  for (const Bounds& bound : bounds) sentences.push_back(bound.text());
  document.section("Points", Document::Heading::not_in_text).table(table);
  document.section("Latency over throughput", Document::Heading::not_in_text).draw({[&] {
    return Picture::Made{latency_plot(report)};
  }});
  document.list("bound by:", sentences).list("refused:", refused);
}

void describe_errors(const ServingReport& report, Document& document) {
  Table table{.heading = {"", "rows", "TTFT error", "inside", "TPOT error", "inside"},
              .rows = {},
              .left = {0}};
  for (const ServingError& error : report.errors)
    table.rows.push_back({error.what, std::to_string(error.rows), to_share(error.first),
                          to_share(error.inside_first, 0), to_share(error.per_token),
                          to_share(error.inside_per_token, 0)});
  document.say("Median errors of rows without flags, and how many lie inside the 80 % interval");
  document.section("Errors", Document::Heading::not_in_text).table(table);
  if (const ServingReleases& releases = report.releases; releases.cells > 0)
    document.section("").say(fmt::format(
        "{} with several releases: {} of them have one price for all, though their "
        "slowest release takes {} longer per token than the fastest (median){}",
        counted(releases.cells, "equal deployment"), releases.alike, to_share(releases.apart),
        releases.example.empty() ? "" : ", such as " + releases.example));
  std::size_t refused = 0;
  for (const ServingRow& row : report.rows) refused += row.refused.empty() ? 0U : 1U;
  if (refused > 0)
    document.section("").say(counted(refused, "row") + " refused; --format csv has the reasons");
}

/// The latencies and the throughput, for the head.
std::string summary_of(const ServingPoint& point) {
  if (!point.refused.empty()) return {};
  const std::string price =
      point.price ? fmt::format("{} {} for a million output tokens; ",
                                money(point.price->output.point), point.price->currency)
                  : "";
  return fmt::format("TTFT {}, TPOT {}, {} output tokens a second a GPU, {} to {}; {}bound by {}",
                     to_text(point.latency("ttft")->mean),
                     time_text(*point.latency("tpot"), point.latency("tpot")->mean),
                     speed(point.output_tokens_per_second), speed(point.lower_output_tokens),
                     speed(point.upper_output_tokens), price, point.bound);
}

Facts latency_facts(const LatencyFigure& figure) {
  const auto [lower, upper] = figure.interval.value_or(std::pair(0ns, 0ns));
  Facts facts;
  facts.when(figure.has_values).fact("mean_ns", figure.mean);
  facts.when(figure.interval.has_value()).fact("lower_ns", lower).fact("upper_ns", end_json(upper));
  facts.when(figure.has_values)
      .detail("p50_ns", figure.p50)
      .detail("p90_ns", figure.p90)
      .fact("p99_ns", figure.p99);
  return facts;
}

nlohmann::json range_json(const RangedNumber& price) {
  return {{"point", price.point}, {"lower", price.lower}, {"upper", price.upper}};
}

nlohmann::json price_json(const std::optional<TokenPrice>& price) {
  if (!price) return {};
  return {{"currency", price->currency},
          {"of_gpu_hour", price->of_hour},
          {"of_a_million_output_tokens", range_json(price->output)},
          {"of_a_million_tokens", range_json(price->all)}};
}

void add_price_columns(const std::optional<TokenPrice>& known, Facts& facts) {
  const TokenPrice price = known.value_or(TokenPrice{});
  facts.when(known.has_value())
      .column("currency", price.currency)
      .column("price_of_a_million_output_tokens", price.output.point)
      .column("price_lower", price.output.lower)
      .column("price_upper", price.output.upper)
      .column("price_of_a_million_tokens", price.all.point);
}

/// Columns that only some answers have.
struct ServingColumns {
  bool prices = false, slo = false;
};

Facts point_facts(const ServingPoint& point, const ServingColumns& columns) {
  const bool is_answered = point.refused.empty();
  Facts facts;
  facts.fact("changed", point.changed);
  facts.when(is_answered);
  for (const char* name : {"ttft", "tpot"}) {
    const LatencyFigure* figure = point.latency(name);
    facts.object(name, name + std::string("_"), latency_facts(figure ? *figure : LatencyFigure{}));
  }
  for (const LatencyFigure& figure : point.latencies) {
    if (!facts.json().contains(figure.name))
      facts.detail(figure.name, latency_facts(figure).json());
  }
  facts.detail("requests", point.requests)
      .detail("gpus", point.gpus)
      .fact("requests_per_second", point.requests_per_second)
      .fact("output_tokens_per_second_per_gpu", point.output_tokens_per_second)
      .detail("lower_output_tokens_per_second_per_gpu", point.lower_output_tokens)
      .detail("upper_output_tokens_per_second_per_gpu", point.upper_output_tokens)
      .detail("tokens_per_second_per_gpu", point.all_tokens_per_second)
      .detail("concurrency", point.concurrency)
      .fact("cache_mean", point.cache_mean)
      .detail("cache_peak", point.cache_peak)
      .fact("waiting_mean", point.waiting_mean)
      .detail("waiting_peak", point.waiting_peak)
      .fact("preemptions", point.preemptions)
      .detail("steps", point.steps)
      .detail("bound", point.bound)
      .fact("covered", point.is_covered)
      .detail("basis", point.basis)
      .detail("price", price_json(point.price))
      .detail("goodput_requests_per_second", point.goodput);
  nlohmann::json shares;
  for (const auto& [name, share] : point.shares) shares[name] = share;
  if (!shares.is_null()) facts.detail("step_shares", shares);
  const std::string_view verdict = to_text(verdict_of(point.slo));
  if (!point.slo.empty())
    facts.detail("slo", {{"verdict", verdict}, {"figures", to_json(point.slo)}});
  facts.when(!is_answered).fact("refused", point.refused);
  if (columns.prices) add_price_columns(point.price, facts);
  if (columns.slo) facts.when(is_answered).column("slo", verdict);
  return facts;
}

Facts measured_facts(const ServingRow& row) {
  Facts facts;
  facts.column("id", row.id)
      .column("system", row.system)
      .column("ttft_ms", row.first_ms)
      .column("measured_ttft_ms", row.measured_first_ms)
      .column("tpot_ms", row.gap_ms)
      .column("measured_tpot_ms", row.measured_gap_ms)
      .column("refused", row.refused);
  return facts;
}

}  // namespace

std::string_view to_text(SloVerdict verdict) {
  constexpr std::string_view kWords[] = {"meets", "typically", "misses"};
  return kWords[static_cast<std::size_t>(verdict)];
}

SloVerdict verdict_of(const std::vector<SloFigure>& figures) {
  SloVerdict verdict = SloVerdict::meets;
  for (const SloFigure& figure : figures) {
    if (figure.typical > figure.limit) return SloVerdict::misses;
    if (figure.interval.second > figure.limit) verdict = SloVerdict::typically;
  }
  return verdict;
}

std::string end_text(Nanoseconds end) { return end == kUnbounded ? "unbounded" : to_text(end); }

nlohmann::json end_json(Nanoseconds end) {
  return end == kUnbounded ? nlohmann::json() : nlohmann::json(end.count());
}

std::string slo_sentence(const std::vector<SloFigure>& figures) {
  std::string text;
  for (const SloFigure& figure : figures)
    text += fmt::format("{} {}, {} to {}, of {}; ", figure.name, to_text(figure.typical),
                        to_text(figure.interval.first), end_text(figure.interval.second),
                        to_text(figure.limit));
  const SloVerdict verdict = verdict_of(figures);
  if (verdict == SloVerdict::meets) return text + "meets it also at the upper ends";
  if (verdict == SloVerdict::misses) return text + "misses it";
  return text + "meets it only with typical times, not at the upper ends";
}

nlohmann::json to_json(const std::vector<SloFigure>& figures) {
  nlohmann::json all = nlohmann::json::object();
  for (const SloFigure& figure : figures) {
    nlohmann::json& json = all[figure.name];
    json = {{"limit_ns", figure.limit.count()}, {"typical_ns", figure.typical.count()}};
    if (figure.interval.second > 0ns)
      json.update({{"lower_ns", figure.interval.first.count()},
                   {"upper_ns", end_json(figure.interval.second)}});
  }
  return all;
}

void write_csv(const ServingReport& report, std::ostream& out) {
  if (!report.rows.empty()) return write_rows(report.rows, measured_facts, out);
  const ServingColumns columns{.prices = has_price(report), .slo = has_slo(report)};
  write_rows(
      report.points, [&](const ServingPoint& point) { return point_facts(point, columns); }, out);
}

nlohmann::json to_json(const ServingReport& report) {
  nlohmann::json errors = nlohmann::json::array();
  const auto facts_of = [](const ServingPoint& point) { return point_facts(point, {}); };
  for (const ServingError& error : report.errors)
    errors.push_back({{"what", error.what},
                      {"rows", error.rows},
                      {"ttft_median_error", error.first},
                      {"ttft_inside", error.inside_first},
                      {"tpot_median_error", error.per_token},
                      {"tpot_inside", error.inside_per_token}});
  return {{"schema", "foretrace.serving/1"},
          {"tool", {{"version", kVersion}}},
          {"model", report.model},
          {"machine", report.machine},
          {"engine", report.engine},
          {"placement", report.placement},
          {"precision", report.precision},
          {"load", report.load},
          {"weights_bytes", report.weights.count},
          {"cache_bytes", report.cache.count},
          {"cache_tokens", report.cache_tokens},
          {"points", rows_json(report.points, facts_of)},
          {"errors", errors},
          {"releases",
           {{"cells", report.releases.cells},
            {"alike", report.releases.alike},
            {"tpot_apart", report.releases.apart},
            {"example", report.releases.example}}},
          {"assumptions", report.assumptions}};
}

Document document_of(const ServingReport& report) {
  Document document("Serving");
  if (!report.errors.empty() || !report.rows.empty()) {
    describe_errors(report, document);
    return document.list("assumed:", report.assumptions);
  }
  document.say(fmt::format("{} ({}) on {}, {}, {}: {}", report.model, report.precision,
                           report.machine, report.placement, report.engine, report.load));
  if (report.points.size() == 1) {
    document.sum_up(summary_of(report.points.front()));
    describe_point(report, report.points.front(), document);
  } else {
    describe_points(report, document);
  }
  return document.list("assumed:", report.assumptions);
}

}  // namespace foretrace
