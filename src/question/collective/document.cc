// The cost of a collective, as text in the style of nccl-tests, CSV and JSON.

#include "document/document.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/parse_number.h"
#include "base/shown.h"
#include "base/wording.h"
#include "document/page/plot.h"
#include "document/words/facts.h"
#include "foretrace/answer/collective.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"

namespace foretrace {
namespace {

constexpr double kGigabyte = 1e9;

bool compares(const CollectiveReport& report) { return !report.errors.empty(); }

bool has_packets(const CollectiveReport& report) {
  for (const CollectiveRow& row : report.rows) {
    if (row.packets) return true;
  }
  return false;
}

bool has_interval(const CollectiveReport& report) {
  for (const CollectiveRow& row : report.rows) {
    if (row.lower != row.upper) return true;
  }
  return false;
}

std::string microseconds(Nanoseconds time) {
  return to_fixed(static_cast<double>(time.count()) / 1e3, 2);
}

std::string gigabytes(double bandwidth) { return to_fixed(bandwidth / kGigabyte, 2); }

Facts packet_facts(const PacketFigures& packets) {
  Facts facts;
  facts.fact("transport", packets.transport)
      .fact("message_mean_ns", packets.mean)
      .fact("message_p50_ns", packets.median)
      .fact("message_p99_ns", packets.p99)
      .fact("dropped_important_bytes", packets.dropped_important)
      .fact("dropped_unimportant_bytes", packets.dropped_unimportant)
      .fact("sent_again_bytes", packets.sent_again)
      .fact("missing_bytes", packets.missing)
      .fact("deepest_queue_bytes", packets.deepest_queue)
      .fact("timeouts", packets.timeouts);
  return facts;
}

/// Packets have columns if any row of the answer has them.
Facts price_facts(const CollectiveRow& row, bool has_packets) {
  Facts facts;
  facts.detail("operation", row.operation)
      .column("collective", row.operation)
      .fact("ranks", row.ranks)
      .fact("nodes", row.nodes)
      .fact("bytes", row.bytes)
      .fact("algorithm", row.algorithm)
      .fact("time_ns", row.time)
      .fact("lower_ns", row.lower)
      .fact("upper_ns", row.upper)
      .detail("algbw_bytes_per_second", row.algorithm_bandwidth)
      .column("algbw_gbps", row.algorithm_bandwidth / kGigabyte)
      .detail("busbw_bytes_per_second", row.bus_bandwidth)
      .column("busbw_gbps", row.bus_bandwidth / kGigabyte)
      .fact("basis", row.basis)
      .fact("measured_ns", row.measured)
      .fact("error", row.error());
  if (has_packets)
    facts.when(row.packets.has_value())
        .object("packets", "", packet_facts(row.packets.value_or(PacketFigures{})));
  return facts;
}

Table collective_table(const CollectiveReport& report) {
  Table table{
      .heading = {"ranks", "nodes", "size", "algorithm", "time us", "algbw GB/s", "busbw GB/s"},
      .rows = {},
      .left = {3}};
  if (has_interval(report)) table.heading.insert(table.heading.end(), {"from us", "to us"});
  if (compares(report)) table.heading.insert(table.heading.end(), {"measured us", "error"});
  table.heading.push_back("basis");
  table.left.push_back(table.heading.size() - 1);
  for (const CollectiveRow& row : report.rows) {
    std::vector<std::string> cells = {
        std::to_string(row.ranks),       std::to_string(row.nodes),
        std::to_string(row.bytes.count), row.algorithm,
        microseconds(row.time),          gigabytes(row.algorithm_bandwidth),
        gigabytes(row.bus_bandwidth)};
    if (has_interval(report)) {
      cells.push_back(microseconds(row.lower));
      cells.push_back(microseconds(row.upper));
    }
    if (compares(report)) {
      const std::optional<double> error = row.error();
      cells.push_back(row.measured ? microseconds(*row.measured) : "-");
      cells.push_back(error ? to_percent(*error) : "-");
    }
    cells.push_back(row.basis);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table packet_table(const CollectiveReport& report) {
  Table table{
      .heading = {"messages of", "sent by", "mean us", "p50 us", "p99 us", "dropped important",
                  "unimportant", "sent again", "missing", "deepest queue", "timeouts"},
      .rows = {},
      .left = {1}};
  for (const CollectiveRow& row : report.rows) {
    if (!row.packets) continue;
    const PacketFigures& packets = *row.packets;
    table.rows.push_back({std::to_string(row.bytes.count), packets.transport,
                          microseconds(packets.mean), microseconds(packets.median),
                          microseconds(packets.p99), to_text(packets.dropped_important),
                          to_text(packets.dropped_unimportant), to_text(packets.sent_again),
                          to_text(packets.missing), to_text(packets.deepest_queue),
                          std::to_string(packets.timeouts)});
  }
  return table;
}

Table collective_error_table(const CollectiveReport& report) {
  Table table{.heading = {"compared with measured times", "sizes", "median error", "worst"},
              .rows = {},
              .left = {0}};
  for (const CollectiveError& error : report.errors) {
    table.rows.push_back(
        {error.what, std::to_string(error.rows), to_share(error.median), to_share(error.highest)});
  }
  return table;
}

std::string spread_text(const RecordedCollectives::Spread& spread) {
  return fmt::format("{} to {}", microseconds(spread.least), microseconds(spread.most));
}

bool has_prices(const CollectiveReport& report) {
  return std::ranges::any_of(report.recorded,
                             [](const auto& row) { return row.priced.has_value(); });
}

/// "ranks 0-3, 8" for "ranks 0, 1, 2, 3, 8"; other names stay.
std::string short_group(const std::string& group) {
  constexpr std::string_view kRanks = "ranks ";
  constexpr std::int64_t kMinRange = 2;  // Two numbers are as short as their range.
  if (!group.starts_with(kRanks)) return group;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::string_view rest = std::string_view(group).substr(kRanks.size()); !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const auto number = parse_number<std::int64_t>(rest.substr(0, comma));
    if (!number) return group;
    if (!ranges.empty() && ranges.back().second + 1 == *number)
      ranges.back().second = *number;
    else
      ranges.emplace_back(*number, *number);
    rest.remove_prefix(comma == rest.npos ? rest.size() : std::min(rest.size(), comma + 2));
  }
  std::string text;
  for (const auto& [first, last] : ranges) {
    text += fmt::format("{}{}", text.empty() ? kRanks : std::string_view(", "), first);
    if (last > first) text += fmt::format("{}{}", last - first < kMinRange ? ", " : "-", last);
  }
  return text;
}

/// "3, 87 %": the rank, and in which share of the collectives that have a skew.
std::string last_text(const RecordedCollectives& row) {
  return fmt::format("{}, {}", row.last->rank,
                     to_share(static_cast<double>(row.last->times) /
                                  static_cast<double>(std::max<std::size_t>(1, row.matched)),
                              0));
}

std::vector<std::string> recorded_cells(const RecordedCollectives& row) {
  return {row.operation,
          short_group(row.group),
          row.bytes > Bytes{} ? std::to_string(row.bytes.count) : "",
          grouped(row.count),
          microseconds(row.kernel),
          row.skew ? microseconds(row.skew->typical) : "",
          row.skew ? microseconds(row.skew->most) : "",
          row.last ? last_text(row) : "",
          row.transfer ? microseconds(row.transfer->typical) : "",
          row.transfer ? spread_text(*row.transfer) : "",
          row.bus_bandwidth > 0 ? gigabytes(row.bus_bandwidth) : ""};
}

Table recorded_table(const CollectiveReport& report) {
  Table table{.heading = {"recorded", "group", "bytes", "count", "kernel us", "skew us",
                          "most skew us", "last", "transfer us", "least to most", "busbw GB/s"},
              .rows = {},
              .left = {0, 1}};
  if (has_prices(report)) table.heading.insert(table.heading.end(), {"priced us", "error"});
  for (const RecordedCollectives& row : report.recorded) {
    std::vector<std::string> cells = recorded_cells(row);
    if (has_prices(report)) {
      const std::optional<double> error = row.error();
      cells.push_back(row.priced ? microseconds(*row.priced) : "");
      cells.push_back(error ? to_percent(*error) : "");
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

void add_spread(const std::string& key, const std::optional<RecordedCollectives::Spread>& spread,
                Facts& facts) {
  const auto known = [&](Nanoseconds time) {
    return spread ? nlohmann::json(time) : nlohmann::json();
  };
  const auto [typical, least, most] = spread.value_or(RecordedCollectives::Spread{});
  facts.column(key + "_ns", known(typical))
      .column(key + "_least_ns", known(least))
      .column(key + "_most_ns", known(most));
  const nlohmann::json times{
      {"typical_ns", typical.count()}, {"least_ns", least.count()}, {"most_ns", most.count()}};
  facts.detail(key, spread ? times : nlohmann::json());
}

Facts recorded_facts(const RecordedCollectives& row) {
  Facts facts;
  facts.detail("operation", row.operation)
      .column("collective", row.operation)
      .fact("group", row.group)
      .fact("ranks", row.ranks)
      .fact("nodes", row.nodes)
      .fact("bytes", unless_default(row.bytes))
      .fact("count", row.count)
      .fact("kernels", row.kernels)
      .fact("kernel_total_ns", row.kernel_total)
      .fact("kernel_ns", row.kernel);
  add_spread("skew", row.skew, facts);
  add_spread("transfer", row.transfer, facts);
  const bool has_last = row.last.has_value();
  const auto [rank, times] = row.last.value_or(RecordedCollectives::Last{});
  facts.detail("busbw_bytes_per_second", unless_default(row.bus_bandwidth))
      .column("busbw_gbps", unless_default(row.bus_bandwidth / kGigabyte))
      .fact("priced_ns", row.priced)
      .fact("error", row.error())
      .fact("matched", row.matched)
      .column("last_rank", has_last ? nlohmann::json(rank) : nlohmann::json())
      .column("last_times", has_last ? nlohmann::json(times) : nlohmann::json())
      .detail("last",
              has_last ? nlohmann::json{{"rank", rank}, {"times", times}} : nlohmann::json());
  return facts;
}

/// Bytes in the units in which buffers are round: 1048576 is 1 MiB and 1000000 is 1 MB.
std::string size_text(Bytes bytes) {
  constexpr std::int64_t kUnits[] = {std::int64_t{1} << 30, std::int64_t{1} << 20,
                                     std::int64_t{1} << 10};
  constexpr const char* kNames[] = {"GiB", "MiB", "KiB"};
  for (std::size_t i = 0; i < std::size(kUnits); ++i) {
    if (bytes.count >= kUnits[i] && bytes.count % kUnits[i] == 0)
      return fmt::format("{} {}", bytes.count / kUnits[i], kNames[i]);
  }
  return to_text(bytes);
}

std::string recorded_heading(const CollectiveReport& report) {
  std::size_t collectives = 0;
  Nanoseconds total{0};
  for (const RecordedCollectives& row : report.recorded)
    collectives += row.count, total += row.kernel_total;
  return fmt::format("{} recorded: kernels of {} on all recorded ranks together{}",
                     counted(collectives, "collective"), to_text(total),
                     has_prices(report) ? ", priced on " + report.machine : "");
}

std::string collective_heading(const CollectiveReport& report) {
  if (report.rows.empty() && !report.recorded.empty()) return recorded_heading(report);
  const std::string operation = report.rows.empty() ? "collective" : report.rows.front().operation;
  std::string text = operation;
  if (report.groups > 1) text += fmt::format(" of {} at once", counted(report.groups, "group"));
  return fmt::format("{} on {}", text, report.machine);
}

/// Returns the bus bandwidth in GB/s that the row would have if it took `time`.
double bandwidth_if(const CollectiveRow& row, Nanoseconds time) {
  const double ratio = static_cast<double>(row.time.count()) / static_cast<double>(time.count());
  return row.bus_bandwidth / 1e9 * ratio;
}

/// Returns two lines for each number of nodes and ranks: predicted and measured.
std::vector<PlotLine> lines_of(const CollectiveReport& report) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> shapes;
  std::vector<PlotLine> lines;
  for (const CollectiveRow& row : report.rows) {
    const auto [shape, is_new] = shapes.try_emplace({row.nodes, row.ranks}, shapes.size());
    const std::size_t number = shape->second;
    if (is_new) {
      const std::string name =
          fmt::format("{} on {}", counted(row.ranks, "rank"), counted(row.nodes, "node"));
      lines.push_back({.name = name, .colour = number});
      lines.push_back({.name = name + ", measured", .colour = number, .is_dashed = true});
    }
    if (row.bus_bandwidth <= 0) continue;
    const auto size = static_cast<double>(row.bytes.count);
    lines[2 * number].points.emplace_back(size, bandwidth_if(row, row.time));
    if (row.lower < row.upper)
      lines[2 * number].band.push_back(
          {size, bandwidth_if(row, row.upper), bandwidth_if(row, row.lower)});
    if (row.measured)
      lines[2 * number + 1].points.emplace_back(size, bandwidth_if(row, *row.measured));
  }
  return lines;
}

/// Marks the first size of each algorithm with its name.
std::vector<PlotDot> changes_of_algorithm(const CollectiveReport& report) {
  std::vector<PlotDot> dots;
  const CollectiveRow* before = nullptr;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> shapes;
  for (const CollectiveRow& row : report.rows) {
    const auto [shape, is_new] = shapes.try_emplace({row.nodes, row.ranks}, shapes.size());
    if (row.bus_bandwidth <= 0) continue;
    if (is_new || before == nullptr || before->algorithm != row.algorithm)
      dots.push_back({.x = static_cast<double>(row.bytes.count),
                      .y = bandwidth_if(row, row.time),
                      .name = row.algorithm,
                      .tooltip = fmt::format("{} from {} on", row.algorithm, size_text(row.bytes)),
                      .colour = shape->second});
    before = &row;
  }
  return dots;
}

std::string plot(const CollectiveReport& report) {
  return html_plot(
      {.x = {.title = "size",
             .label = [](double size) { return size_text(Bytes{std::llround(size)}); },
             .step = 16},
       .y = {.title = "bus bandwidth",
             .label = [](double rate) { return to_text(rate) + " GB/s"; }},
       .described = "Bus bandwidth over size, and the algorithm from each size on; the table has "
                    "the same numbers",
       .lines = lines_of(report),
       .dots = changes_of_algorithm(report)});
}

/// Names the fastest of the largest size.
std::string largest_of(const CollectiveReport& report) {
  if (report.rows.empty()) return {};
  const CollectiveRow& row = report.rows.back();
  return fmt::format("{} on {}: {}, {} GB/s of bus bandwidth", size_text(row.bytes),
                     counted(row.ranks, "rank"), to_text(row.time), gigabytes(row.bus_bandwidth));
}

}  // namespace

void write_csv(const CollectiveReport& report, std::ostream& out) {
  if (report.rows.empty() && !report.recorded.empty())
    return write_rows(report.recorded, recorded_facts, out);
  const bool with_packets = has_packets(report);
  write_rows(
      report.rows, [&](const CollectiveRow& row) { return price_facts(row, with_packets); }, out);
}

nlohmann::json to_json(const CollectiveReport& report) {
  nlohmann::json errors = nlohmann::json::array();
  const auto facts_of = [](const CollectiveRow& row) {
    return price_facts(row, row.packets.has_value());
  };
  for (const CollectiveError& error : report.errors)
    errors.push_back({{"what", error.what},
                      {"rows", error.rows},
                      {"median", error.median},
                      {"highest", error.highest}});
  return {{"schema", "foretrace.collective/1"},
          {"tool", {{"version", kVersion}}},
          {"machine", report.machine},
          {"fidelity", report.fidelity},
          {"groups", report.groups},
          {"rows", rows_json(report.rows, facts_of)},
          {"recorded", rows_json(report.recorded, recorded_facts)},
          {"errors", errors},
          {"calibration", unless_default(report.calibration)},
          {"assumptions", report.assumptions},
          {"notes", notes_json(report.notes)}};
}

Document document_of(const CollectiveReport& report) {
  using enum Document::Heading;
  Document document("Collective");
  document.say(collective_heading(report)).sum_up(largest_of(report));
  document.section("Recorded", not_in_text).table(recorded_table(report));
  if (!report.rows.empty())
    document.section("Bandwidth over size", not_in_text).draw({[&] {
      return Picture::Made{plot(report)};
    }});
  if (!report.rows.empty()) document.section("Sizes", not_in_text).table(collective_table(report));
  document.section("Packets", not_in_text).table(packet_table(report));
  document.section("Errors", not_in_text);
  if (compares(report)) document.table(collective_error_table(report));
  if (!report.calibration.empty())
    document.section("").say("calibration from " + report.calibration);
  return document.list("assumed:", report.assumptions).notes(report.notes);
}

}  // namespace foretrace
