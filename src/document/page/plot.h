#pragma once

// Pictures with two axes that need no script: lines, bands and dots in SVG. Places are shares of
// the picture, so that it fits any window and text keeps its size.
//
//     100 % |o--- ----...___            o  a dot with its name
//      50 % |      ::::::::::----___    :  a band around the line
//       0 % |______________________
//            1    2    4    8    16

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace foretrace {

struct PlotLine {
  std::string name;        ///< In the legend; empty: not there.
  std::size_t colour = 0;  ///< Lines and dots of one colour belong together.
  bool is_dashed = false;
  std::vector<std::pair<double, double>> points = {};  ///< (x, y) in order of x.
  /// The line's uncertainty, as {x, lowest y, highest y}.
  std::vector<std::array<double, 3>> band = {};
};

struct PlotDot {
  double x = 0, y = 0;
  std::string name = {};     ///< Written beside the dot, where there is room.
  std::string tooltip = {};  ///< Shown when the pointer rests on it.
  std::size_t colour = 0;
};

/// By default, an axis ends at its first and last value.
struct PlotAxis {
  std::string title = {};
  std::function<std::string(double)> label = {};
  bool is_linear = false;  ///< Otherwise it is logarithmic.
  /// Factor from one label of a logarithmic axis to the next; 0: at round numbers.
  double step = 0;
  std::optional<double> from = {}, to = {};  ///< Values that the axis has to show.
};

struct Plot {
  PlotAxis x, y;
  std::string described;  ///< Description for screen readers.
  std::vector<PlotLine> lines = {};
  std::vector<PlotDot> dots = {};
  bool is_low = false;  ///< About half as tall as others.
};

/// Returns HTML with a legend of all names of lines, or an empty text if there is nothing to draw.
/// Values that an axis cannot show (not finite; on a logarithmic one, not above 0) are left out.
std::string html_plot(Plot plot);

}  // namespace foretrace
