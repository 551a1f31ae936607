#include "network/nccl/collective_model.h"

#include <algorithm>
#include <cmath>

#include "base/numbers/simplex.h"
#include "network/nccl/constants.h"
#include "network/nccl/sends.h"

namespace foretrace {
namespace {

constexpr double kOutlier = .5;  ///< A logarithm: larger errors count linearly.
/// Weight of the square of ln (number / start), relative to the error of one row.
constexpr double kPriorWeight = .01;
constexpr double kNoLimit = 1e30;

/// Bytes that cross a rank's port within a node, and its NIC, as shares of the buffer; and hops.
struct Traffic {
  double within = 1, across = 0;
  double within_hops = 1, across_hops = 0;
  double own = 0;              ///< Share of the buffer that a rank copies in its own memory.
  double most_own = kNoLimit;  ///< GB/s limit of this copy, in addition to that of `within`.
  double most_within = kNoLimit, most_across = kNoLimit;  ///< GB/s of the channels to one peer.
};

/// Assumes that each rank has a NIC, and that NCCL doubles its channels.
std::uint32_t peer_channels(Shape shape) {
  return channels_per_peer(shape.nodes * shape.per_node, shape.per_node, kNoLimit);
}

Traffic to_neighbor(Shape shape, double bytes) {
  const bool many = shape.nodes > 1;
  const std::uint32_t ranks = shape.nodes * shape.per_node;
  Traffic load{
      .within = ranks > 1 ? 1.0 : 0.0, .across = many ? 1.0 : 0.0, .across_hops = many ? 1.0 : 0.0};
  if (!many) load.most_within = local_peer_rate(ranks, bytes);
  if (many) load.most_across = peer_rate(peer_channels(shape));
  return load;
}

Traffic traffic(Operation operation, Shape shape, double bytes) {
  const double nodes = shape.nodes, g = shape.per_node, p = nodes * g;
  // The part of the buffer that crosses the edge of a node.
  const double others = (nodes - 1) / nodes;
  const double own = nccl::kOwnCopy / p;
  const bool many = shape.nodes > 1;
  switch (operation) {
    case Operation::all_reduce:
      return {2 * (p - 1) / p, 2 * others / g, 2 * (g - 1), many ? 2 * std::log2(nodes) : 0, own};
    case Operation::all_gather:
    case Operation::reduce_scatter:
      return {(p - 1) / p, others / g, g - 1, nodes - 1, own};
    case Operation::all_to_all:
      return {(g - 1) / p,
              others,
              1,
              (nodes - 1) * g,
              many ? 1 / p : own,
              many ? own_copy_rate(peer_channels(shape)) : kNoLimit};
    case Operation::send_receive:
      return to_neighbor(shape, bytes);
    default:
      return {g > 1 ? 1.0 : 0.0, many ? 1 / g : 0, g - 1, std::log2(nodes)};
  }
}

using LogParameters = std::vector<double>;

LogParameters logs(const CollectiveModel& model) {
  return {std::log(model.base),   std::log(model.within_hop), std::log(model.across_hop),
          std::log(model.within), std::log(model.across),     std::log(model.mixed)};
}

CollectiveModel model_of(const LogParameters& parameters) {
  return {std::exp(parameters[0]), std::exp(parameters[1]), std::exp(parameters[2]),
          std::exp(parameters[3]), std::exp(parameters[4]), std::exp(parameters[5])};
}

double loss(double error) {
  const double size = std::abs(error);
  return size < kOutlier ? size * size : kOutlier * (2 * size - kOutlier);
}

}  // namespace

Shape shape_of(const MeasuredCollective& row) {
  return {row.nodes, std::max(1U, row.ranks / row.nodes)};
}

double CollectiveModel::us(Operation operation, Shape shape, Bytes bytes) const {
  const Traffic load = traffic(operation, shape, static_cast<double>(bytes.count));
  const auto n = static_cast<double>(bytes.count) / 1e3;
  const double latency = base + load.within_hops * within_hop + load.across_hops * across_hop;
  const double wire = n * (std::max(load.within / std::min(within, load.most_within),
                                    load.across / std::min(across, load.most_across)) +
                           load.own / std::min(within, load.most_own));
  return latency + wire + mixed * std::sqrt(latency * wire);
}

CollectiveModel fit_model(const std::vector<MeasuredCollective>& rows,
                          const CollectiveModel& start) {
  const LogParameters first = logs(start);
  const auto cost = [&](const LogParameters& parameters) {
    const CollectiveModel model = model_of(parameters);
    double sum = 0;
    for (const MeasuredCollective& row : rows)
      sum += loss(std::log(row.us / model.us(row.operation, shape_of(row), row.bytes)));
    for (std::size_t i = 0; i < parameters.size(); ++i)
      sum += kPriorWeight * (parameters[i] - first[i]) * (parameters[i] - first[i]);
    return sum;
  };
  return model_of(minimize(cost, first, {.tolerance = 1e-9}));
}

}  // namespace foretrace
