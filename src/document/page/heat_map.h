#pragma once

// A table whose cells are coloured by their values, with a thick line around those that hold:
//
//            0.5    0.7    1
//     0    |  :  |  #  |##//##|     # the higher, the stronger
//     0.5  |  :  |  :  |##//##|     / does not hold
//
// Colour adds nothing that the texts of the cells do not say, so that it needs no table beside it.

#include <cstdint>
#include <string>
#include <vector>

namespace foretrace {

struct HeatCell {
  std::string text = {};     ///< Empty: nothing is known.
  std::string tooltip = {};  ///< Screen readers say it behind `text`.
  double share = 0;          ///< From 0, as the page, to 1.
  bool holds = true;
  bool is_best = false;
};

struct HeatMap {
  std::string described;     ///< Says to screen readers what cells show.
  std::string down, across;  ///< Names of the two settings.
  std::vector<std::string> rows, columns;
  std::vector<std::vector<HeatCell>> cells;  ///< By row, then by column.
};

std::string html_heat_map(const HeatMap& map);

}  // namespace foretrace
