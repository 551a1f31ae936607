#pragma once

// Pictures of a page that need no script: bars in SVG. Their sizes are shares of the width, so that
// they fit any window and text keeps its size. No picture relies on colour alone: each part has a
// label in the bar or in its tooltip, and a table next to the picture shows the same.
//
//     now        |#### compute ####|C|IIIII|            12.5 ms
//     predicted  |#### compute #|--+-|                   9.1 ms, its range, and a mark

#include <optional>
#include <string>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

struct BarPart {
  double from = 0, width = 0;  ///< Shares of the bar's room.
  std::string label, letter;   ///< Text in the bar: whichever fits; both may be empty.
  std::string colour;          ///< A class of the style sheet, such as "part-host".
  std::string tooltip;
};

/// A line across a bar, such as a limit.
struct BarMark {
  double at = 0;       ///< Share of the bar's room.
  std::string colour;  ///< Of the style sheet, such as "bad".
  std::string tooltip;
};

/// The uncertainty of a bar, drawn as a line with two ends.
struct BarRange {
  double from = 0, to = 0;  ///< Shares of the bar's room.
  std::string tooltip;
};

struct BarRow {
  std::string name;
  std::vector<BarPart> parts;
  std::string value = {};  ///< Text after the bar.
  std::vector<BarMark> marks = {};
  std::optional<BarRange> range = {};
};

/// The time that the room of all bars stands for, labelled at round times below them.
struct BarAxis {
  Nanoseconds length{0};  ///< 0: no axis.
  double room = 1;        ///< Share of the bar's room at which it ends.
};

/// `label` is the screen reader's text for the whole picture.
std::string html_bars(const std::string& label, const std::vector<BarRow>& rows,
                      const BarAxis& axis = {});

/// A colour of the style sheet and its meaning.
struct LegendEntry {
  std::string colour, text;
  std::string shape = {};  ///< "dashed" or "mark" for a line; empty: of an area.
};
std::string html_legend(const std::vector<LegendEntry>& entries);

}  // namespace foretrace
