#include "document/page/line_plot.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/wording.h"
#include "document/page/page_shell.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

constexpr double kWidth = 760, kHeight = 320, kLeft = 70, kRight = 10, kBottom = 40;  // Pixels.

/// The range of the data, and its mapping to pixels.
struct Frame {
  double left = 1e300, right = 0, low = 1e300, high = 0;

  explicit Frame(const std::vector<PlotLine>& lines) {
    for (const PlotLine& line : lines) {
      for (const auto& [x, y] : line.points) {
        left = std::min(left, x), right = std::max(right, x);
        low = std::min(low, std::pow(10, std::floor(std::log10(y))));
        high = std::max(high, std::pow(10, std::ceil(std::log10(y))));
      }
    }
  }

  static double part(double value, double from, double to) {
    return std::log(value / from) / std::max(std::log(to / from), 1e-9);
  }
  double x(double value) const {
    return kLeft + part(value, left, right) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - part(value, low, high) * (kHeight - kBottom - kRight);
  }
};

std::string label(double x, double y, const std::string& anchor, const std::string& text) {
  return fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" fill=\"currentColor\" "
      "font-size=\"12\">{}</text>\n",
      to_fixed(x, 1), to_fixed(y, 1), anchor, html_text(text));
}

std::string grid(const Frame& frame, const PlotAxes& axes) {
  constexpr double kSlack = 1.001;  // Powers of ten are not exact.
  std::string svg;
  for (double value = frame.low; value <= frame.high * kSlack; value *= 10) {
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" "
        "stroke=\"currentColor\" stroke-opacity=\"0.2\"/>\n",
        to_fixed(kLeft, 0), to_fixed(kWidth - kRight, 0), to_fixed(frame.y(value), 1));
    svg += label(kLeft - 6, frame.y(value) + 4, "end", axes.y_label(value));
  }
  for (double value = frame.left; value <= frame.right * kSlack; value *= axes.x_step)
    svg += label(frame.x(value), kHeight - kBottom + 18, "middle", axes.x_label(value));
  return svg;
}

/// Whether a logarithmic axis cannot show this point.
bool is_unplottable(const std::pair<double, double>& point) {
  const auto is_placed = [](double value) { return std::isfinite(value) && value > 0; };
  return !is_placed(point.first) || !is_placed(point.second);
}

}  // namespace

std::string line_plot(std::vector<PlotLine> lines, const PlotAxes& axes) {
  static constexpr const char* kColours[] = {"#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed"};
  for (PlotLine& line : lines) std::erase_if(line.points, is_unplottable);
  const Frame frame(lines);
  if (frame.right <= 0) return {};
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" width=\"100%\">\n{}",
      to_fixed(kWidth, 0), to_fixed(kHeight, 0), html_text(axes.described), grid(frame, axes));
  for (const PlotLine& line : lines) {
    std::string points;
    for (const auto& [x, y] : line.points)
      points += fmt::format("{},{} ", to_fixed(frame.x(x), 1), to_fixed(frame.y(y), 1));
    svg += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{} "
        "points=\"{}\"><title>{}</title></polyline>\n",
        kColours[line.colour % std::size(kColours)],
        line.is_dashed ? " stroke-dasharray=\"4 4\"" : "", points, html_text(line.name));
  }
  return svg + "</svg>\n";
}

}  // namespace foretrace
