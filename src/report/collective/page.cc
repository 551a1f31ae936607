// The page: a plot of bus bandwidth over size, both on logarithmic scales, and the tables.

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "base/wording.h"
#include "foretrace/report.h"
#include "report/collective/collective_table.h"
#include "report/page/page_shell.h"

namespace foretrace {
namespace {

constexpr double kWidth = 760, kHeight = 320, kLeft = 70, kBottom = 40;  // Pixels.

using Points = std::vector<std::pair<double, double>>;  ///< Log2 of bytes, log10 of GB/s.

/// One line of the plot for each shape, priced and measured.
struct PlotLine {
  std::string name;
  bool is_measured = false;
  Points points;
};

double gigabytes(const CollectiveRow& row, Nanoseconds time) {
  const double ratio = static_cast<double>(row.time.count()) / static_cast<double>(time.count());
  return row.bus_bandwidth / 1e9 * ratio;
}

std::vector<PlotLine> lines_of(const CollectiveReport& report) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<PlotLine, PlotLine>> shapes;
  for (const CollectiveRow& row : report.rows) {
    auto& [priced, measured] = shapes[{row.nodes, row.ranks}];
    priced.name = counted(row.ranks, "rank") + " on " + counted(row.nodes, "node");
    measured.name = priced.name + ", measured";
    measured.is_measured = true;
    if (row.bus_bandwidth <= 0) continue;
    const double size = std::log2(static_cast<double>(row.bytes.count));
    priced.points.emplace_back(size, std::log10(gigabytes(row, row.time)));
    if (row.measured) measured.points.emplace_back(size, std::log10(gigabytes(row, *row.measured)));
  }
  std::vector<PlotLine> lines;
  for (auto& [shape, both] : shapes) {
    for (PlotLine* line : {&both.first, &both.second}) {
      if (!line->points.empty()) lines.push_back(std::move(*line));
    }
  }
  return lines;
}

struct Frame {
  double left = 1e9, right = -1e9, low = 1e9, high = -1e9;
  double x(double size) const {
    return kLeft + (size - left) / std::max(right - left, 1.0) * (kWidth - kLeft - 10);
  }
  double y(double rate) const {
    return kHeight - kBottom - (rate - low) / std::max(high - low, 1.0) * (kHeight - kBottom - 10);
  }
};

Frame frame_of(const std::vector<PlotLine>& lines) {
  Frame frame;
  for (const PlotLine& line : lines) {
    for (const auto& [size, rate] : line.points) {
      frame.left = std::min(frame.left, size), frame.right = std::max(frame.right, size);
      frame.low = std::min(frame.low, std::floor(rate));
      frame.high = std::max(frame.high, std::ceil(rate));
    }
  }
  return frame;
}

std::string label(double x, double y, const std::string& anchor, const std::string& text) {
  return "<text x=\"" + to_fixed(x, 1) + "\" y=\"" + to_fixed(y, 1) + "\" text-anchor=\"" + anchor +
         "\" fill=\"currentColor\" font-size=\"12\">" + html_text(text) + "</text>\n";
}

std::string grid(const Frame& frame) {
  constexpr double kSizesApart = 4;  // 16 times.
  std::string svg;
  for (double rate = frame.low; rate <= frame.high; ++rate) {
    const std::string y = to_fixed(frame.y(rate), 1);
    svg += "<line x1=\"" + to_fixed(kLeft, 0) + "\" x2=\"" + to_fixed(kWidth - 10, 0) + "\" y1=\"" +
           y + "\" y2=\"" + y + "\" stroke=\"currentColor\" stroke-opacity=\"0.2\"/>\n";
    svg += label(kLeft - 6, frame.y(rate) + 4, "end", to_text(std::pow(10.0, rate)) + " GB/s");
  }
  for (double size = std::ceil(frame.left); size <= frame.right; size += kSizesApart)
    svg += label(frame.x(size), kHeight - kBottom + 18, "middle",
                 to_text(Bytes{std::int64_t{1} << static_cast<int>(size)}));
  return svg;
}

std::string plot(const CollectiveReport& report) {
  static constexpr const char* kColours[] = {"#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed"};
  const std::vector<PlotLine> lines = lines_of(report);
  if (lines.empty()) return {};
  const Frame frame = frame_of(lines);
  std::string svg = "<svg viewBox=\"0 0 " + to_fixed(kWidth, 0) + " " + to_fixed(kHeight, 0) +
                    "\" role=\"img\" aria-label=\"Bus bandwidth over size; the table has the same "
                    "numbers\" width=\"100%\">\n" +
                    grid(frame);
  std::map<std::string, std::size_t> colours;  // Of shapes; measured ones are dashed.
  for (const PlotLine& line : lines) {
    const std::string shape = line.name.substr(0, line.name.find(','));
    const std::size_t colour = colours.emplace(shape, colours.size()).first->second;
    std::string points;
    for (const auto& [size, rate] : line.points)
      points += to_fixed(frame.x(size), 1) + "," + to_fixed(frame.y(rate), 1) + " ";
    svg += "<polyline fill=\"none\" stroke=\"" + std::string(kColours[colour % 5]) +
           "\" stroke-width=\"2\"" + (line.is_measured ? " stroke-dasharray=\"4 4\"" : "") +
           " points=\"" + points + "\"><title>" + html_text(line.name) + "</title></polyline>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace

void write_collective_page(const CollectiveReport& report, std::ostream& out) {
  Page page;
  page.title = page.heading = collective_heading(report);
  page.sections.push_back({"bandwidth", "Bandwidth over size",
                           plot(report) + "<p>Priced: lines; measured: dashed.</p>\n"});
  if (!report.errors.empty())
    page.sections.push_back(
        {"errors", "Errors", html_table("Errors", collective_error_table(report))});
  page.sections.push_back({"sizes", "Sizes", html_table("Sizes", collective_table(report))});
  if (!report.assumptions.empty())
    page.sections.push_back({"assumed", "Assumed", html_items(report.assumptions)});
  write_page(page, out);
}

}  // namespace foretrace
