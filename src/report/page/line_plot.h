#pragma once

// Lines over two logarithmic axes, as a picture that needs no script.

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace foretrace {

struct PlotLine {
  std::string name;
  std::size_t colour = 0;  ///< Lines of a colour belong together.
  bool is_dashed = false;
  std::vector<std::pair<double, double>> points = {};  ///< In the order of the first number.
};

struct PlotAxes {
  double x_step = 2;  ///< From one label to the next, as a factor.
  std::function<std::string(double)> x_label, y_label;
  std::string described;  ///< For screen readers.
};

/// SVG; empty where there is no point. Vertically there is a label for each power of ten. Points
/// that have no place on logarithmic axes (not finite, not above 0) are left out.
std::string line_plot(std::vector<PlotLine> lines, const PlotAxes& axes);

}  // namespace foretrace
