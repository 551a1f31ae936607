#include "document/page/page_charts.h"

#include <algorithm>
#include <fmt/core.h>

#include "document/page/page_shell.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

/// Returns a share of the width in percent, clamped to 0 to 100.
std::string width_text(double share) {
  return to_fixed(100 * std::clamp(share, 0.0, 1.0), 3) + '%';
}

/// Estimates the width of `text` as a share of the bar, on a page of medium width.
double room_for(const std::string& text) { return 0.012 * static_cast<double>(text.size() + 1); }

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
    html += fmt::format("<text x=\"{}\" y=\"50%\">{}</text>",
                        width_text(part.from + part.width / 2), html_text(text));
  }
  return html + "</g>";
}

}  // namespace

std::string html_bars(const std::string& label, const std::vector<BarRow>& rows) {
  std::string html =
      fmt::format("<div class=\"bars\" role=\"img\" aria-label=\"{}\">\n", html_text(label));
  for (const BarRow& row : rows) {
    html += fmt::format("<span class=\"name\">{}</span><svg aria-hidden=\"true\">",
                        html_text(row.name));
    for (const BarPart& part : row.parts) html += part_html(part);
    if (row.mark >= 0) {
      html += fmt::format(
          "<line class=\"mark-edge\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"100%\"/>"
          "<line class=\"mark\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"100%\">"
          "<title>{1}</title></line>",
          width_text(row.mark), html_text(row.mark_tooltip));
    }
    html += fmt::format("</svg><span class=\"value\">{}</span>\n", html_text(row.value));
  }
  return html + "</div>\n";
}

std::string html_legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<div class=\"legend\" role=\"group\" aria-label=\"Legend\">\n";
  for (const LegendEntry& entry : entries) {
    html += fmt::format("<span{} style=\"--c: var(--{})\">{}</span>\n",
                        entry.is_dashed ? " class=\"dashed\"" : "", html_text(entry.colour),
                        html_text(entry.text));
  }
  return html + "</div>\n";
}

}  // namespace foretrace
