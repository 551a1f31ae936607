#pragma once

// Draws lines on two logarithmic axes, as a picture that needs no script.

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace foretrace {

struct PlotLine {
  std::string name;
  std::size_t colour = 0;  ///< Lines of the same colour belong together.
  bool is_dashed = false;
  std::vector<std::pair<double, double>> points = {};  ///< (x, y) in order of x.
};

struct PlotAxes {
  double x_step = 2;  ///< Factor from one label to the next.
  std::function<std::string(double)> x_label, y_label;
  std::string described;  ///< Description for screen readers.
};

/// Returns SVG, or an empty text if there is no point. The vertical axis has a label at each power
/// of ten. Points that logarithmic axes cannot show (not finite, or not above 0) are left out.
std::string line_plot(std::vector<PlotLine> lines, const PlotAxes& axes);

}  // namespace foretrace
