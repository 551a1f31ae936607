#pragma once

// Pictures of a page that need no script: bars in SVG. Their sizes are shares of the width, so that
// they fit any window and text keeps its size. No picture relies on colour alone: each part has a
// label in the bar or in its tooltip, and a table next to the picture shows the same.
//
//     now        |#### compute ####|C|IIIII|            12.5 ms
//     predicted  |#### compute ####|I|                   9.1 ms

#include <string>
#include <vector>

namespace foretrace {

struct BarPart {
  double from = 0, width = 0;  ///< Shares of the bar's room.
  std::string label, letter;   ///< Text in the bar: whichever fits; both may be empty.
  std::string colour;          ///< A class of the style sheet, such as "part-host".
  std::string tooltip;
};

struct BarRow {
  std::string name;
  std::vector<BarPart> parts;
  std::string value;         ///< Text after the bar.
  double mark = -1;          ///< Where a line crosses the bar, such as a limit; negative: none.
  std::string mark_tooltip;  ///< Text of the mark's tooltip.
};

/// `label` is the screen reader's text for the whole picture.
std::string html_bars(const std::string& label, const std::vector<BarRow>& rows);

/// A colour of the style sheet and its meaning.
struct LegendEntry {
  std::string colour, text;
  bool is_dashed = false;  ///< Of a line.
};
std::string html_legend(const std::vector<LegendEntry>& entries);

}  // namespace foretrace
