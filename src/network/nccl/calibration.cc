#include "network/nccl/calibration.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/statistics.h"

namespace foretrace {
namespace {

using Rows = std::vector<MeasuredCollective>;
using Fit = Calibration::Fit;
using Residuals = Calibration::Residuals;
using RowsByOperation = std::map<Operation, Rows>;

/// Percent of held-out times that an interval should contain.
constexpr std::size_t kInterval = 80;
/// The spread if no shape can be left out: 28 % either way at a distance of 0. Our choice.
constexpr double kUnknown = .25;

double log2_of(double value) { return std::log2(std::max(value, 1.0)); }
double log2_of(Bytes bytes) { return log2_of(static_cast<double>(bytes.count)); }

double interpolated(const Residuals& points, double x) {
  const auto above = std::lower_bound(points.begin(), points.end(), std::pair{x, -1e300});
  if (above == points.begin()) return points.front().second;
  if (above == points.end()) return points.back().second;
  const auto below = above - 1;
  const double part = (x - below->first) / (above->first - below->first);
  return below->second + part * (above->second - below->second);
}

/// One row for each shape and size: the median of its times.
Rows medians(const Rows& rows) {
  std::map<std::pair<Shape, std::int64_t>, std::vector<double>> times;
  for (const MeasuredCollective& row : rows)
    times[{shape_of(row), row.bytes.count}].push_back(row.us);
  Rows merged;
  for (const auto& [key, us] : times) {
    const auto& [shape, bytes] = key;
    merged.push_back(
        {rows.front().operation, shape.nodes * shape.per_node, shape.nodes, {bytes}, median(us)});
  }
  return merged;
}

/// REQUIRES: `rows` are the medians of one operation.
Fit fit_of(const Rows& rows, const CollectiveModel& start) {
  Fit fit{.model = fit_model(rows, start), .rows = rows.size(), .residuals = {}};
  for (const MeasuredCollective& row : rows) {
    const double model = fit.model.us(row.operation, shape_of(row), row.bytes);
    fit.residuals[shape_of(row)].emplace_back(log2_of(row.bytes), std::log(row.us / model));
  }
  return fit;
}

struct Predicted {
  double us = 0;
  bool has_kind = false;  ///< Whether a shape of the same kind was measured.
  double distance = 0;    ///< To the nearest of these shapes; 0 if there is none.
  bool is_covered = false;
};

bool same_kind(Shape a, Shape b) { return (a.nodes > 1) == (b.nodes > 1); }

double distance_of(Shape a, Shape b) {
  return std::abs(std::log2(static_cast<double>(a.nodes) / b.nodes)) +
         std::abs(std::log2(static_cast<double>(a.per_node) / b.per_node));
}

/// Returns the measured shapes of the same kind whose ranks per node are nearest, with log2 of
/// their node counts, sorted.
std::vector<std::pair<double, const Residuals*>> nearest(const Fit& fit, Shape shape) {
  const auto distance = [&](Shape other) {
    return std::abs(std::log2(static_cast<double>(other.per_node) / shape.per_node));
  };
  double least = 1e300;
  for (const auto& [other, points] : fit.residuals) {
    if (same_kind(other, shape)) least = std::min(least, distance(other));
  }
  std::vector<std::pair<double, const Residuals*>> found;
  for (const auto& [other, points] : fit.residuals) {
    if (same_kind(other, shape) && distance(other) <= least)
      found.emplace_back(log2_of(other.nodes), &points);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return found;
}

Predicted predict(const Fit& fit, Operation operation, Shape shape, Bytes bytes) {
  Predicted predicted{.us = fit.model.us(operation, shape, bytes)};
  const double size = log2_of(bytes), nodes = log2_of(shape.nodes);
  const auto shapes = nearest(fit, shape);
  if (shapes.empty()) return predicted;
  predicted.has_kind = true;
  bool has_size = true;
  Residuals by_nodes;
  for (const auto& [at, points] : shapes) {
    by_nodes.emplace_back(at, interpolated(*points, size));
    has_size = has_size && size >= points->front().first && size <= points->back().first;
  }
  predicted.distance = 1e300;
  bool same_per_node = false;
  for (const auto& [other, points] : fit.residuals) {
    if (!same_kind(other, shape)) continue;
    predicted.distance = std::min(predicted.distance, distance_of(other, shape));
    same_per_node = same_per_node || other.per_node == shape.per_node;
  }
  const bool inside = nodes >= by_nodes.front().first && nodes <= by_nodes.back().first;
  predicted.is_covered = has_size && inside && same_per_node;
  predicted.us *= std::exp(interpolated(by_nodes, nodes));
  return predicted;
}

/// Starting points of the fits. The network is the same for all operations, so an operation without
/// rows across nodes starts from the median of the others.
class StartingPoints {
 public:
  StartingPoints(const RowsByOperation& by_operation, const CollectiveModel& first)
      : first_(first) {
    for (const auto& [operation, rows] : by_operation) {
      const bool crosses =
          std::ranges::any_of(rows, [](const MeasuredCollective& row) { return row.nodes > 1; });
      if (crosses) across_[operation] = fit_model(rows, first);
    }
  }

  CollectiveModel of(Operation operation) const {
    std::vector<double> bandwidths, hops;
    for (const auto& [other, model] : across_) {
      if (other == operation) continue;
      bandwidths.push_back(model.across);
      hops.push_back(model.across_hop);
    }
    CollectiveModel start = first_;
    if (!bandwidths.empty()) start.across = median(bandwidths), start.across_hop = median(hops);
    return start;
  }

 private:
  CollectiveModel first_;
  std::map<Operation, CollectiveModel> across_;
};

/// Errors of held-out times, divided by the growth of the spread with distance.
struct HeldOutErrors {
  std::vector<double> sizes, shapes, kinds;
  std::vector<double> repeats;  ///< Of rows from the median of those that are alike.

  static double growth(double distance) { return std::sqrt(1 + distance); }

  void add(const Fit& fit, const MeasuredCollective& row) {
    const Predicted predicted = predict(fit, row.operation, shape_of(row), row.bytes);
    const double error = std::abs(std::log(row.us / predicted.us)) / growth(predicted.distance);
    (predicted.has_kind ? shapes : kinds).push_back(error);
  }

  void add_sizes(const Fit& fit) {
    for (const auto& [shape, points] : fit.residuals) {
      for (std::size_t i = 1; i + 1 < points.size(); ++i) {
        const Residuals neighbors = {points[i - 1], points[i + 1]};
        sizes.push_back(std::abs(points[i].second - interpolated(neighbors, points[i].first)));
      }
    }
  }

  void add_repeats(const Rows& rows, const Rows& merged) {
    if (rows.size() == merged.size()) return;
    std::map<std::pair<Shape, std::int64_t>, double> medians;
    for (const MeasuredCollective& row : merged) medians[{shape_of(row), row.bytes.count}] = row.us;
    for (const MeasuredCollective& row : rows)
      repeats.push_back(std::abs(std::log(row.us / medians.at({shape_of(row), row.bytes.count}))));
  }

  Calibration::Spreads spreads() const {
    const auto spread = [](std::vector<double> errors, double otherwise) {
      return errors.empty() ? otherwise : upper_quantile(errors, kInterval);
    };
    const double near = spread(shapes, kUnknown), again = spread(repeats, 0);
    return {std::hypot(spread(sizes, near), again), std::hypot(near, again),
            std::hypot(std::max(near, spread(kinds, kUnknown)), again)};
  }
};

void hold_out(const Rows& rows, const CollectiveModel& start, HeldOutErrors& held_out) {
  std::map<Shape, Rows> by_shape;
  for (const MeasuredCollective& row : rows) by_shape[shape_of(row)].push_back(row);
  if (by_shape.size() < 2) return;
  for (const auto& [shape, out] : by_shape) {
    Rows others;
    for (const MeasuredCollective& row : rows) {
      if (shape_of(row) != shape) others.push_back(row);
    }
    const Fit fit = fit_of(others, start);
    for (const MeasuredCollective& row : out) held_out.add(fit, row);
  }
}

}  // namespace

Calibration::Calibration(const Rows& rows, const RankPlaces& places) : rows_(rows.size()) {
  CollectiveModel first;
  if (places.intra > 0) first.within = places.intra;
  if (places.inter > 0) first.across = places.inter / places.per_node;
  RowsByOperation by_operation;
  for (const MeasuredCollective& row : rows) by_operation[row.operation].push_back(row);
  HeldOutErrors held_out;
  for (auto& [operation, own_rows] : by_operation) {
    const Rows merged = medians(own_rows);
    held_out.add_repeats(own_rows, merged);
    own_rows = merged;
  }
  const StartingPoints starts(by_operation, first);
  for (const auto& [operation, own_rows] : by_operation) {
    const CollectiveModel start = starts.of(operation);
    fits_[operation] = fit_of(own_rows, start);
    held_out.add_sizes(fits_[operation]);
    hold_out(own_rows, start, held_out);
  }
  spreads_ = held_out.spreads();
}

CalibratedTime Calibration::time(Operation operation, Shape shape, Bytes bytes) const {
  const Fit& fit = fits_.at(operation);
  const Predicted predicted = predict(fit, operation, shape, bytes);
  const double spread = fit.residuals.contains(shape) ? spreads_.sizes
                        : predicted.has_kind          ? spreads_.shapes
                                                      : spreads_.kinds;
  const double far = std::exp(spread * HeldOutErrors::growth(predicted.distance));
  return {predicted.us, predicted.us / far, predicted.us * far, predicted.is_covered};
}

}  // namespace foretrace
