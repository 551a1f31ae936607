#include "document/page/heat_map.h"

#include <algorithm>
#include <fmt/core.h>

#include "document/page/page_shell.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

/// Whether a line parts a cell from its neighbour: one of them holds, and the other does not.
bool parts(const HeatCell& cell, const HeatCell& other) {
  return !cell.text.empty() && !other.text.empty() && cell.holds != other.holds;
}

std::string cell_html(const HeatMap& map, std::size_t row, std::size_t column) {
  const HeatCell& cell = map.cells[row][column];
  if (cell.text.empty()) return "<td></td>";
  std::string classes = cell.holds ? "" : " fails";
  if (cell.is_best) classes += " best";
  if (column + 1 < map.columns.size() && parts(cell, map.cells[row][column + 1]))
    classes += " edge-right";
  if (row + 1 < map.rows.size() && parts(cell, map.cells[row + 1][column]))
    classes += " edge-below";
  const std::string tooltip = html_text(cell.tooltip);
  return fmt::format(
      "<td class=\"heat{}\" style=\"--heat: {}%\" title=\"{}\">{}{}</td>", classes,
      to_fixed(100 * std::clamp(cell.share, 0., 1.), 1), tooltip, html_text(cell.text),
      tooltip.empty() ? "" : fmt::format("<span class=\"said\">, {}</span>", tooltip));
}

}  // namespace

std::string html_heat_map(const HeatMap& map) {
  std::string html = fmt::format(
      "<div class=\"table\" role=\"group\" tabindex=\"0\" aria-label=\"{0}\">"
      "<table aria-label=\"{0}\"><thead><tr><td></td><th scope=\"colgroup\" class=\"left\" "
      "colspan=\"{1}\">{2}</th></tr>\n<tr><th scope=\"col\" class=\"left\">{3}</th>",
      html_text(map.described), map.columns.size(), html_text(map.across), html_text(map.down));
  for (const std::string& column : map.columns)
    html += fmt::format("<th scope=\"col\">{}</th>", html_text(column));
  html += "</tr></thead><tbody>\n";
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    html += fmt::format("<tr><th scope=\"row\" class=\"left\">{}</th>", html_text(map.rows[row]));
    for (std::size_t column = 0; column < map.columns.size(); ++column)
      html += cell_html(map, row, column);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace foretrace
