#include "report/page/page_charts.h"

#include <algorithm>

#include "foretrace/units.h"
#include "report/page/page_shell.h"

namespace foretrace {
namespace {

/// Returns a share of the width in percent, clamped to 0 to 100.
std::string width_text(double share) {
  return to_fixed(100 * std::clamp(share, 0.0, 1.0), 3) + '%';
}

/// Estimates the width of `text` as a share of the bar, on a page of medium width.
double room_for(const std::string& text) { return 0.012 * static_cast<double>(text.size() + 1); }

std::string part_html(const BarPart& part) {
  std::string html = "<g><rect class=\"" + part.colour + "\" x=\"" + width_text(part.from) +
                     "\" y=\"0\" width=\"" + width_text(part.width) + "\" height=\"100%\">";
  if (!part.tooltip.empty()) html += "<title>" + html_text(part.tooltip) + "</title>";
  html += "</rect>";
  const std::string& text = part.width >= room_for(part.label)    ? part.label
                            : part.width >= room_for(part.letter) ? part.letter
                                                                  : std::string();
  if (!text.empty()) {
    html += "<text x=\"" + width_text(part.from + part.width / 2) + "\" y=\"50%\">" +
            html_text(text) + "</text>";
  }
  return html + "</g>";
}

}  // namespace

std::string html_bars(const std::string& label, const std::vector<BarRow>& rows) {
  std::string html = "<div class=\"bars\" role=\"img\" aria-label=\"" + html_text(label) + "\">\n";
  for (const BarRow& row : rows) {
    html += "<span class=\"name\">" + html_text(row.name) + "</span><svg aria-hidden=\"true\">";
    for (const BarPart& part : row.parts) html += part_html(part);
    if (row.mark >= 0) {
      const std::string at = width_text(row.mark);
      const std::string edge =
          "<line class=\"mark-edge\" x1=\"" + at + "\" x2=\"" + at + "\" y1=\"0\" y2=\"100%\"/>";
      html += edge + "<line class=\"mark\" x1=\"" + at + "\" x2=\"" + at +
              "\" y1=\"0\" y2=\"100%\"><title>" + html_text(row.mark_tooltip) + "</title></line>";
    }
    html += "</svg><span class=\"value\">" + html_text(row.value) + "</span>\n";
  }
  return html + "</div>\n";
}

std::string html_legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<div class=\"legend\" role=\"group\" aria-label=\"Legend\">\n";
  for (const LegendEntry& entry : entries) {
    html += "<span style=\"--c: var(--" + html_text(entry.colour) + ")\">" + html_text(entry.text) +
            "</span>\n";
  }
  return html + "</div>\n";
}

}  // namespace foretrace
