#include "document/page/plot.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>

#include "document/page/page_charts.h"
#include "document/page/page_shell.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

/// Shapes that have an area or a length of their own are drawn in a square of this size, which is
/// stretched to the size of the picture.
constexpr double kSquare = 1000;
constexpr std::size_t kMaxLabels = 12;
constexpr std::size_t kColours = 5;  ///< As many as the style sheet has.

/// An axis with the range that it shows.
class Scale {
 public:
  Scale(const PlotAxis& axis, const std::vector<double>& values) : axis_(axis) {
    for (const double value : values) include(value);
    if (axis.from) include(*axis.from);
    if (axis.to) include(*axis.to);
  }

  bool can_show(double value) const {
    return std::isfinite(value) && (axis_.is_linear || value > 0);
  }
  bool is_empty() const { return low_ > high_; }
  /// The place of a value, from 0 to 1.
  double share(double value) const {
    if (high_ <= low_) return 0.5;
    const double all = axis_.is_linear ? high_ - low_ : std::log(high_ / low_);
    return (axis_.is_linear ? value - low_ : std::log(value / low_)) / all;
  }
  std::vector<double> labelled() const {
    if (axis_.is_linear) return multiples();
    return axis_.step > 0 ? powers_of(axis_.step) : round_numbers();
  }
  std::string label(double value) const { return html_text(axis_.label(value)); }

 private:
  void include(double value) {
    if (can_show(value)) low_ = std::min(low_, value), high_ = std::max(high_, value);
  }
  /// Multiples of 1, 2 or 5 times a power of ten.
  std::vector<double> multiples() const {
    constexpr double kAbout = 6;  // Labels.
    const double raw = std::max((high_ - low_) / kAbout, std::numeric_limits<double>::min());
    const double power = std::pow(10, std::floor(std::log10(raw)));
    double step = 10 * power;
    for (const double times : {5, 2, 1}) {
      if (times * power >= raw) step = times * power;
    }
    std::vector<double> all;
    const double last = std::floor(high_ / step + kSlack);
    for (double i = std::ceil(low_ / step - kSlack); i <= last && all.size() <= kMaxLabels; ++i)
      // A fraction such as 3 / 5 is as close to 0.6 as can be, and 3 * 0.2 is not; there is no -0.
      all.push_back((step < 1 ? i / std::round(1 / step) : i * step) + 0.);
    return all;
  }
  std::vector<double> powers_of(double step) const {
    while (std::log(high_ / low_) > std::log(step) * kMaxLabels) step *= step;
    std::vector<double> all;
    for (double value = low_; value <= high_ * (1 + kSlack); value *= step) all.push_back(value);
    return all;
  }
  /// 1, 2 and 5 times powers of ten; only the powers if there are many.
  std::vector<double> round_numbers() const {
    std::vector<double> all, powers;
    const double first = std::floor(std::log10(low_)), last = std::log10(high_) + kSlack;
    for (double power = first; power <= last; ++power) {
      for (const double times : {1, 2, 5}) {
        const double value = times * std::pow(10, power);
        if (value < low_ * (1 - kSlack) || value > high_ * (1 + kSlack)) continue;
        all.push_back(value);
        if (times == 1) powers.push_back(value);
      }
    }
    return all.size() > kMaxLabels ? powers : all;
  }

  static constexpr double kSlack = 1e-9;  // For the rounding of floating point.
  const PlotAxis& axis_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;
};

std::string percent(double share) { return to_fixed(100 * share, 2) + '%'; }

/// Draws a plot whose values all have a place.
class Drawn {
 public:
  Drawn(const Plot& plot, const Scale& x, const Scale& y) : plot_(plot), x_(x), y_(y) {}

  std::string html() const {
    std::string shapes, dots, names;
    for (const PlotLine& line : plot_.lines) shapes += band(line) + path(line);
    for (const PlotDot& dot : plot_.dots) dots += circle(dot);
    const auto quiet = [](const std::string& title) {
      return title.empty() ? "" : fmt::format("<p class=\"quiet\">{}</p>", html_text(title));
    };
    return fmt::format(
        "<div class=\"plot{}\" role=\"img\" aria-label=\"{}\">{}<svg aria-hidden=\"true\">\n{}"
        "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">\n{}</svg>\n{}{}</svg>{}</div>\n",
        plot_.is_low ? " low" : "", html_text(plot_.described), quiet(plot_.y.title), grid(),
        kSquare, kSquare, shapes, dots, dot_names(), quiet(plot_.x.title));
  }

 private:
  std::string at(double x, double y) const {
    return fmt::format("{},{} ", to_fixed(kSquare * x_.share(x), 1),
                       to_fixed(kSquare * (1 - y_.share(y)), 1));
  }

  std::string grid() const {
    std::string svg;
    for (const double value : y_.labelled()) {
      const std::string place = percent(1 - y_.share(value));
      svg += fmt::format(
          "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{0}\" y2=\"{0}\"/>"
          "<text x=\"0\" dx=\"-8\" y=\"{0}\" dy=\"4\" text-anchor=\"end\">{1}</text>\n",
          place, y_.label(value));
    }
    const std::vector<double> across = x_.labelled();
    for (std::size_t i = 0; i < across.size(); ++i) {
      // Narrow windows have no room for each second label.
      svg += fmt::format("<text{} x=\"{}\" y=\"100%\" dy=\"20\" text-anchor=\"middle\">{}</text>\n",
                         i % 2 == 0 ? "" : " class=\"wide\"", percent(x_.share(across[i])),
                         x_.label(across[i]));
    }
    return svg;
  }

  static std::string series(std::size_t colour) {
    return fmt::format("style=\"--series: var(--series-{})\"", colour % kColours);
  }

  std::string band(const PlotLine& line) const {
    if (line.band.empty()) return {};
    std::string points;
    for (const auto& [x, low, high] : line.band) points += at(x, high);
    for (auto span = line.band.rbegin(); span != line.band.rend(); ++span)
      points += at((*span)[0], (*span)[1]);
    return fmt::format("<polygon {} points=\"{}\"/>\n", series(line.colour), points);
  }

  std::string path(const PlotLine& line) const {
    std::string points;
    for (const auto& [x, y] : line.points) points += at(x, y);
    return fmt::format("<polyline {}{} points=\"{}\"><title>{}</title></polyline>\n",
                       series(line.colour), line.is_dashed ? " class=\"dashed\"" : "", points,
                       html_text(line.name));
  }

  std::string circle(const PlotDot& dot) const {
    return fmt::format("<circle {} cx=\"{}\" cy=\"{}\" r=\"4\"><title>{}</title></circle>\n",
                       series(dot.colour), percent(x_.share(dot.x)), percent(1 - y_.share(dot.y)),
                       html_text(dot.tooltip.empty() ? dot.name : dot.tooltip));
  }

  /// The place of a name: beside its dot, above or below.
  struct Place {
    bool is_left = false, is_below = false;
    double from = 0, to = 0, y = 0;  ///< Shares of the picture.
  };

  /// A name is above its dot, on the side that the line leaves free; where there is no room, it is
  /// below on the other side.
  Place place_of(const PlotDot& dot, double letter) const {
    constexpr double kOutside = 0.04;  // Share that a name may stand out of the picture.
    const double x = x_.share(dot.x), room = letter * static_cast<double>(dot.name.size() + 1);
    const bool wants_left = is_rising();
    const bool has_room = wants_left ? x - room > -kOutside : x + room < 1 + kOutside;
    const bool is_left = has_room == wants_left;
    return {is_left, !has_room, is_left ? x - room : x, is_left ? x : x + room,
            1 - y_.share(dot.y)};
  }

  /// Whether the first line rises from its first point to its last.
  bool is_rising() const {
    if (plot_.lines.empty()) return false;
    const auto& points = plot_.lines.front().points;
    return points.back().second > points.front().second;
  }

  /// The places of names if letters are as wide as this share of the picture. Of names that would
  /// cover each other, the first is written.
  std::vector<std::optional<Place>> places(double letter) const {
    constexpr double kLine = 0.06;  // Height of a line of text.
    std::vector<std::optional<Place>> all(plot_.dots.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (plot_.dots[i].name.empty()) continue;
      const Place place = place_of(plot_.dots[i], letter);
      const bool is_covering = std::ranges::any_of(all, [&](const std::optional<Place>& other) {
        return other && place.from < other->to && other->from < place.to &&
               std::abs(place.y - other->y) < kLine;
      });
      if (!is_covering) all[i] = place;
    }
    return all;
  }

  /// The names that windows of medium width have room for; those of them that phones have none for
  /// are only in wide ones.
  std::string dot_names() const {
    constexpr double kLetter = 0.0085, kNarrowLetter = 0.023;
    const auto wide = places(kLetter), narrow = places(kNarrowLetter);
    std::string svg;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      if (!wide[i]) continue;
      svg += fmt::format(
          "<text class=\"name{}\" x=\"{}\" dx=\"{}\" y=\"{}\" dy=\"{}\" "
          "text-anchor=\"{}\">{}</text>\n",
          narrow[i] && narrow[i]->is_left == wide[i]->is_left ? "" : " wide",
          percent(x_.share(plot_.dots[i].x)), wide[i]->is_left ? -6 : 6, percent(wide[i]->y),
          wide[i]->is_below ? 16 : -7, wide[i]->is_left ? "end" : "start",
          html_text(plot_.dots[i].name));
    }
    return svg;
  }

  const Plot& plot_;
  const Scale& x_;
  const Scale& y_;
};

/// Returns the values that lines, bands and dots have on one axis.
std::vector<double> values_of(const Plot& plot, bool is_x) {
  std::vector<double> all;
  for (const PlotLine& line : plot.lines) {
    for (const auto& [x, y] : line.points) all.push_back(is_x ? x : y);
    for (const auto& [x, low, high] : line.band) {
      all.push_back(is_x ? x : low);
      all.push_back(is_x ? x : high);
    }
  }
  for (const PlotDot& dot : plot.dots) all.push_back(is_x ? dot.x : dot.y);
  return all;
}

void leave_out_placeless(Plot& plot, const Scale& x, const Scale& y) {
  for (PlotLine& line : plot.lines) {
    std::erase_if(line.points, [&](const auto& point) {
      return !x.can_show(point.first) || !y.can_show(point.second);
    });
    std::erase_if(line.band, [&](const auto& span) {
      return !x.can_show(span[0]) || !y.can_show(span[1]) || !y.can_show(span[2]);
    });
  }
  std::erase_if(plot.dots,
                [&](const PlotDot& dot) { return !x.can_show(dot.x) || !y.can_show(dot.y); });
  std::erase_if(plot.lines, [](const PlotLine& line) { return line.points.empty(); });
}

std::string legend(const Plot& plot) {
  std::vector<LegendEntry> entries;
  for (const PlotLine& line : plot.lines) {
    if (!line.name.empty())
      entries.push_back({fmt::format("series-{}", line.colour % kColours), line.name,
                         line.is_dashed ? "dashed" : ""});
  }
  return entries.empty() ? "" : html_legend(entries);
}

}  // namespace

std::string html_plot(Plot plot) {
  leave_out_placeless(plot, Scale(plot.x, {}), Scale(plot.y, {}));
  if (plot.lines.empty() && plot.dots.empty()) return {};
  const Scale x(plot.x, values_of(plot, true)), y(plot.y, values_of(plot, false));
  return Drawn(plot, x, y).html() + legend(plot);
}

}  // namespace foretrace
