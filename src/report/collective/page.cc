// The cost of a collective as a page: a plot of bus bandwidth over size, both on logarithmic
// scales, and the tables.

#include <fmt/core.h>
#include <map>
#include <ostream>

#include "base/wording.h"
#include "foretrace/report.h"
#include "report/collective/collective_table.h"
#include "report/page/line_plot.h"
#include "report/page/page_shell.h"

namespace foretrace {
namespace {

/// Returns the bus bandwidth in GB/s that the row would have if it took `time`.
double gigabytes(const CollectiveRow& row, Nanoseconds time) {
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
    lines[2 * number].points.emplace_back(size, gigabytes(row, row.time));
    if (row.measured)
      lines[2 * number + 1].points.emplace_back(size, gigabytes(row, *row.measured));
  }
  return lines;
}

std::string plot(const CollectiveReport& report) {
  return line_plot(
      lines_of(report),
      {.x_step = 16,
       .x_label = [](double size) { return to_text(Bytes{static_cast<std::int64_t>(size)}); },
       .y_label = [](double rate) { return to_text(rate) + " GB/s"; },
       .described = "Bus bandwidth over size; the table has the same numbers"});
}

}  // namespace

void write_collective_page(const CollectiveReport& report, std::ostream& out) {
  Page page;
  page.title = page.heading = collective_heading(report);
  page.sections.push_back(
      {"bandwidth", "Bandwidth over size",
       plot(report) + "<p>Solid lines are predicted, dashed lines measured.</p>\n"});
  if (!report.errors.empty())
    page.sections.push_back(
        {"errors", "Errors", html_table("Errors", collective_error_table(report))});
  page.sections.push_back({"sizes", "Sizes", html_table("Sizes", collective_table(report))});
  if (!report.assumptions.empty())
    page.sections.push_back({"assumed", "Assumed", html_items(report.assumptions)});
  write_page(page, out);
}

}  // namespace foretrace
