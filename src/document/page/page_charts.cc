#include "document/page/page_charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>

#include "document/page/page_shell.h"

namespace foretrace {
namespace {

/// Returns a share of the width in percent, clamped to 0 to 100.
std::string width_text(double share) {
  return to_fixed(100 * std::clamp(share, 0.0, 1.0), 3) + '%';
}

/// Estimates the width of `text` as a share of the bar, on a page of medium width or of a phone.
double room_for(const std::string& text) { return 0.012 * static_cast<double>(text.size() + 1); }
double narrow_room_for(const std::string& text) {
  return 0.021 * static_cast<double>(text.size() + 1);
}

std::string part_html(const BarPart& part) {
  std::string html =
      fmt::format("<g><rect class=\"{}\" x=\"{}\" y=\"0\" width=\"{}\" height=\"100%\">",
                  part.colour, width_text(part.from), width_text(part.width));
  if (!part.tooltip.empty()) html += fmt::format("<title>{}</title>", html_text(part.tooltip));
  html += "</rect>";
  const std::string& text = part.width >= room_for(part.label)    ? part.label
                            : part.width >= room_for(part.letter) ? part.letter
                                                                  : std::string();
  if (!text.empty()) {
    html += fmt::format("<text{} x=\"{}\" y=\"50%\">{}</text>",
                        part.width >= narrow_room_for(text) ? "" : " class=\"wide\"",
                        width_text(part.from + part.width / 2), html_text(text));
  }
  return html + "</g>";
}

/// Lines have an edge in the colour of the page, so that they can be seen on a bar. Those of rows
/// below each other meet.
std::string mark_html(const BarMark& mark) {
  return fmt::format(
      "<g class=\"mark\" style=\"--c: var(--{1})\"><line class=\"edge\" x1=\"{0}\" x2=\"{0}\" "
      "y1=\"-2\" y2=\"26\"/><line x1=\"{0}\" x2=\"{0}\" y1=\"-2\" y2=\"26\"><title>{2}</title>"
      "</line></g>",
      width_text(mark.at), mark.colour, html_text(mark.tooltip));
}

std::string range_html(const BarRange& range) {
  std::string lines;
  for (const char* kind : {" class=\"edge\"", ""}) {
    lines += fmt::format(
        "<line{2} x1=\"{0}\" x2=\"{1}\" y1=\"50%\" y2=\"50%\"/>"
        "<line{2} x1=\"{0}\" x2=\"{0}\" y1=\"25%\" y2=\"75%\"/>"
        "<line{2} x1=\"{1}\" x2=\"{1}\" y1=\"25%\" y2=\"75%\"/>",
        width_text(range.from), width_text(range.to), kind);
  }
  return fmt::format("<g class=\"range\">{}<title>{}</title></g>", lines, html_text(range.tooltip));
}

/// A label has room at its place only; one at the right end would be outside the picture.
std::string axis_html(const BarAxis& axis) {
  constexpr double kAbout = 5, kLastLabel = 0.96;
  const auto length = static_cast<double>(axis.length.count());
  const double power = std::pow(10, std::floor(std::log10(std::max(length / kAbout, 1.))));
  constexpr std::array kSteps = {1., 2., 5., 10.};
  const double step = power * *std::ranges::find_if(kSteps, [&](double times) {
                        return times == kSteps.back() || times * power >= length / kAbout;
                      });
  std::string labels;
  for (double at = 0; at <= kLastLabel * length; at += step) {
    labels +=
        fmt::format("<line x1=\"{0}\" x2=\"{0}\" y2=\"4\"/><text x=\"{0}\" y=\"12\">{1}</text>",
                    width_text(axis.room * at / length), to_text(Nanoseconds(std::llround(at))));
  }
  return fmt::format(
      "<span class=\"name\"></span><svg class=\"axis\" aria-hidden=\"true\">{}</svg>"
      "<span class=\"value\"></span>\n",
      labels);
}

}  // namespace

std::string html_bars(const std::string& label, const std::vector<BarRow>& rows,
                      const BarAxis& axis) {
  std::string html =
      fmt::format("<div class=\"bars\" role=\"img\" aria-label=\"{}\">\n", html_text(label));
  for (const BarRow& row : rows) {
    html += fmt::format("<span class=\"name\">{}</span><svg aria-hidden=\"true\">",
                        html_text(row.name));
    for (const BarPart& part : row.parts) html += part_html(part);
    for (const BarMark& mark : row.marks) html += mark_html(mark);
    if (row.range) html += range_html(*row.range);
    html += fmt::format("</svg><span class=\"value\">{}</span>\n", html_text(row.value));
  }
  if (axis.length > 0ns) html += axis_html(axis);
  return html + "</div>\n";
}

std::string html_legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<div class=\"legend\" role=\"group\" aria-label=\"Legend\">\n";
  for (const LegendEntry& entry : entries) {
    html += fmt::format("<span{} style=\"--c: var(--{})\">{}</span>\n",
                        entry.shape.empty() ? "" : fmt::format(" class=\"{}\"", entry.shape),
                        html_text(entry.colour), html_text(entry.text));
  }
  return html + "</div>\n";
}

}  // namespace foretrace
