#include "network/nccl/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/statistics.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "network/nccl/simplex.h"

namespace foretrace {
namespace {

constexpr double kOutlier = .5;  ///< Of a logarithm: beyond it, errors count linearly.
constexpr double kDrawn = .01;   ///< Weight of the square of ln (number / start), over one row's.
constexpr std::size_t kInterval = 80;  ///< Percent of sizes that the model alone should hold.
constexpr const char* kSchema = "foretrace.calibration/1";

/// Bytes over a rank's port within a node, and over its NIC, as shares of the buffer; and hops.
struct Traffic {
  double within = 1, across = 0;
  double within_hops = 1, across_hops = 0;
};

Traffic traffic(Operation operation, Shape shape) {
  const double nodes = shape.nodes, g = shape.per_node, p = nodes * g;
  const double others = (nodes - 1) / nodes;  // Of the buffer, what crosses the edge of a node.
  const bool many = shape.nodes > 1;
  switch (operation) {
    case Operation::all_reduce:
      return {2 * (p - 1) / p, 2 * others / g, 2 * (g - 1), many ? 2 * std::log2(nodes) : 0};
    case Operation::all_gather:
    case Operation::reduce_scatter:
      return {(p - 1) / p, others / g, g - 1, nodes - 1};
    case Operation::all_to_all:
      return {(g - 1) / p, others, 1, nodes - 1};
    case Operation::send_receive:
      return {g > 1 ? 1.0 : 0.0, many ? 1.0 : 0.0, 1, many ? 1.0 : 0.0};
    default:
      return {g > 1 ? 1.0 : 0.0, many ? 1 / g : 0, g - 1, std::log2(nodes)};
  }
}

using Numbers = std::array<double, 6>;

Numbers logs(const CollectiveModel& model) {
  return {std::log(model.base),   std::log(model.within_hop), std::log(model.across_hop),
          std::log(model.within), std::log(model.across),     std::log(model.mixed)};
}

CollectiveModel model_of(const Numbers& numbers) {
  return {std::exp(numbers[0]), std::exp(numbers[1]), std::exp(numbers[2]),
          std::exp(numbers[3]), std::exp(numbers[4]), std::exp(numbers[5])};
}

Shape shape_of(const MeasuredCollective& row) {
  return {row.nodes, std::max(1U, row.ranks / row.nodes)};
}

double loss(double error) {
  const double size = std::abs(error);
  return size < kOutlier ? size * size : kOutlier * (2 * size - kOutlier);
}

CollectiveModel fitted(const std::vector<MeasuredCollective>& rows, const CollectiveModel& start) {
  const Numbers first = logs(start);
  const auto cost = [&](const Numbers& numbers) {
    const CollectiveModel model = model_of(numbers);
    double sum = 0;
    for (const MeasuredCollective& row : rows)
      sum += loss(std::log(row.us / model.us(row.operation, shape_of(row), row.bytes)));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      sum += kDrawn * (numbers[i] - first[i]) * (numbers[i] - first[i]);
    return sum;
  };
  return model_of(least<6>(cost, first));
}

using ByOperation = std::map<Operation, std::vector<MeasuredCollective>>;

/// The network is the same for all operations: those without rows across nodes start from the
/// median of those with.
void learn_across(const ByOperation& by_operation, CollectiveModel& start) {
  std::vector<double> bandwidths, hops;
  for (const auto& [operation, rows] : by_operation) {
    const bool crosses = std::any_of(rows.begin(), rows.end(),
                                     [](const MeasuredCollective& row) { return row.nodes > 1; });
    if (!crosses) continue;
    const CollectiveModel model = fitted(rows, start);
    bandwidths.push_back(model.across);
    hops.push_back(model.across_hop);
  }
  if (bandwidths.empty()) return;
  start.across = median(bandwidths);
  start.across_hop = median(hops);
}

double interpolated(const std::vector<std::pair<double, double>>& points, double x) {
  const auto above = std::lower_bound(points.begin(), points.end(), std::pair{x, -1e300});
  if (above == points.begin()) return points.front().second;
  if (above == points.end()) return points.back().second;
  const auto below = above - 1;
  const double part = (x - below->first) / (above->first - below->first);
  return below->second + part * (above->second - below->second);
}

std::string number(const nlohmann::json& value, const char* name, double& out) {
  if (!value.contains(name) || !value[name].is_number()) return name;
  out = value[name].get<double>();
  return "";
}

}  // namespace

double CollectiveModel::us(Operation operation, Shape shape, Bytes bytes) const {
  const Traffic way = traffic(operation, shape);
  const auto n = static_cast<double>(bytes.count) / 1e3;
  const double latency = base + way.within_hops * within_hop + way.across_hops * across_hop;
  const double wire = n * std::max(way.within / within, way.across / across);
  return latency + wire + mixed * std::sqrt(latency * wire);
}

Calibration::Calibration(const std::vector<MeasuredCollective>& rows, const RankPlaces& places)
    : rows_(rows.size()) {
  CollectiveModel start;
  if (places.intra > 0) start.within = places.intra;
  if (places.inter > 0) start.across = places.inter / places.per_node;
  ByOperation by_operation;
  for (const MeasuredCollective& row : rows) by_operation[row.operation].push_back(row);
  learn_across(by_operation, start);
  for (const auto& [operation, own] : by_operation) {
    Fit& fit = fits_[operation];
    fit.rows = own.size();
    fit.model = fitted(own, start);
    std::map<std::pair<Shape, std::int64_t>, std::vector<double>> errors;
    std::vector<double> sizes;
    for (const MeasuredCollective& row : own) {
      const double model = fit.model.us(operation, shape_of(row), row.bytes);
      errors[{shape_of(row), row.bytes.count}].push_back(std::log(row.us / model));
    }
    for (const auto& [key, values] : errors) {
      fit.residuals[key.first].emplace_back(std::log2(static_cast<double>(key.second)),
                                            median(values));
      sizes.push_back(std::abs(median(values)));
    }
    fit.spread = upper_quantile(sizes, kInterval);
  }
}

Calibrated Calibration::time(Operation operation, Shape shape, Bytes bytes) const {
  const Fit& fit = fits_.at(operation);
  const double model = fit.model.us(operation, shape, bytes);
  const double size = std::log2(static_cast<double>(std::max<std::int64_t>(bytes.count, 1)));
  // Shapes of the same kind with the nearest number of ranks per node.
  const auto distance = [&](Shape other) {
    return std::abs(std::log2(static_cast<double>(other.per_node) / shape.per_node));
  };
  double nearest = 1e300;
  for (const auto& [other, points] : fit.residuals) {
    if ((other.nodes > 1) == (shape.nodes > 1)) nearest = std::min(nearest, distance(other));
  }
  std::vector<std::pair<double, double>> by_nodes;
  bool has_size = true;
  for (const auto& [other, points] : fit.residuals) {
    if ((other.nodes > 1) != (shape.nodes > 1) || distance(other) > nearest) continue;
    by_nodes.emplace_back(std::log2(static_cast<double>(other.nodes)), interpolated(points, size));
    has_size = has_size && size >= points.front().first && size <= points.back().first;
  }
  if (by_nodes.empty()) return {model, model, model, false};
  std::sort(by_nodes.begin(), by_nodes.end());
  const double nodes = std::log2(static_cast<double>(shape.nodes));
  const bool inside = nodes >= by_nodes.front().first && nodes <= by_nodes.back().first;
  const double at = interpolated(by_nodes, nodes);
  double low = at, high = at;
  for (std::size_t i = 0; i < by_nodes.size(); ++i) {
    const bool passes_below = i + 1 < by_nodes.size() && by_nodes[i + 1].first <= nodes;
    const bool passes_above = i > 0 && by_nodes[i - 1].first >= nodes;
    if (inside && (passes_below || passes_above)) continue;
    low = std::min(low, by_nodes[i].second), high = std::max(high, by_nodes[i].second);
  }
  if (!inside || nearest > 0) low -= fit.spread, high += fit.spread;
  return {model * std::exp(at), model * std::exp(low), model * std::exp(high),
          has_size && inside && nearest == 0};
}

std::vector<std::string> Calibration::summary() const {
  std::vector<std::string> lines;
  for (const auto& [operation, fit] : fits_) {
    const CollectiveModel& model = fit.model;
    const auto one = [](double value) { return to_fixed(value, value < 10 ? 2 : 1); };
    lines.push_back(std::string(to_string(operation)) + ": 6 numbers and " +
                    counted(static_cast<std::int64_t>(fit.residuals.size()), "shape") + " from " +
                    counted(static_cast<std::int64_t>(fit.rows), "row") + ": base " +
                    one(model.base) + " us, hop " + one(model.within_hop) + " us within and " +
                    one(model.across_hop) + " us across nodes, " + one(model.within) +
                    " GB/s within and " + one(model.across) + " GB/s a NIC, mixed " +
                    one(model.mixed));
  }
  return lines;
}

nlohmann::json Calibration::json() const {
  nlohmann::json fits = nlohmann::json::object();
  for (const auto& [operation, fit] : fits_) {
    nlohmann::json shapes = nlohmann::json::array();
    for (const auto& [shape, points] : fit.residuals) {
      nlohmann::json residuals = nlohmann::json::array();
      for (const auto& [size, error] : points) residuals.push_back({size, error});
      shapes.push_back(
          {{"nodes", shape.nodes}, {"ranks_per_node", shape.per_node}, {"residuals", residuals}});
    }
    fits[std::string(to_string(operation))] = {{"rows", fit.rows},
                                               {"spread", fit.spread},
                                               {"base_us", fit.model.base},
                                               {"within_hop_us", fit.model.within_hop},
                                               {"across_hop_us", fit.model.across_hop},
                                               {"within_gbps", fit.model.within},
                                               {"across_gbps", fit.model.across},
                                               {"mixed", fit.model.mixed},
                                               {"shapes", shapes}};
  }
  return {{"schema", kSchema}, {"rows", rows_}, {"operations", fits}};
}

Calibration::Calibration(const nlohmann::json& json) {
  if (!json.is_object() || json.value("schema", "") != kSchema)
    throw Error("must be a calibration (schema \"" + std::string(kSchema) + "\")");
  try {
    rows_ = json.at("rows").get<std::size_t>();
    for (const auto& [name, one] : json.at("operations").items()) {
      Fit& fit = fits_[read_operation(name)];
      fit.rows = one.at("rows").get<std::size_t>();
      fit.spread = one.at("spread").get<double>();
      CollectiveModel& model = fit.model;
      for (const auto& [key, value] : {std::pair{"base_us", &model.base},
                                       {"within_hop_us", &model.within_hop},
                                       {"across_hop_us", &model.across_hop},
                                       {"within_gbps", &model.within},
                                       {"across_gbps", &model.across},
                                       {"mixed", &model.mixed}}) {
        if (!number(one, key, *value).empty() || !(*value > 0))
          throw Error(name + ": " + key + " must be a number greater than 0");
      }
      for (const nlohmann::json& shape : one.at("shapes")) {
        auto& points = fit.residuals[{shape.at("nodes").get<std::uint32_t>(),
                                      shape.at("ranks_per_node").get<std::uint32_t>()}];
        for (const nlohmann::json& point : shape.at("residuals"))
          points.emplace_back(point.at(0).get<double>(), point.at(1).get<double>());
        if (points.empty()) throw Error(name + ": a shape must have residuals");
        std::sort(points.begin(), points.end());
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(std::string("must be a calibration: ") + error.what());
  }
}

}  // namespace foretrace
