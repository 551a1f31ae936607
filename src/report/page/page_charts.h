#pragma once

// Pictures of a page that need no script: bars in SVG, drawn in shares of the width, so that they
// fit any window and text keeps its size. None tells anything by colour alone: what a part is, is
// written in it or in its tooltip, and a table beside the picture says the same.
//
//     now        |#### compute ####|C|IIIII|            12.5 ms
//     predicted  |#### compute ####|I|                   9.1 ms

#include <string>
#include <vector>

namespace foretrace {

struct BarPart {
  double from = 0, width = 0;  ///< Shares of the bar's room.
  std::string label, letter;   ///< Whichever fits is written in it; both may be empty.
  std::string colour;          ///< Of the style sheet: "part-host".
  std::string tooltip;
};

struct BarRow {
  std::string name;
  std::vector<BarPart> parts;
  std::string value;         ///< Behind the bar.
  double mark = -1;          ///< A line across, such as a limit; negative: none.
  std::string mark_tooltip;  ///< What it is.
};

/// `label` is what a screen reader says of the whole picture.
std::string html_bars(const std::string& label, const std::vector<BarRow>& rows);

/// What the colours stand for.
struct LegendEntry {
  std::string colour, text;
};
std::string html_legend(const std::vector<LegendEntry>& entries);

}  // namespace foretrace
