#include <algorithm>
#include <fmt/core.h>

#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "network/nccl/nccl_system.h"
#include "network/network.h"
#include "price/price.h"

namespace foretrace {
namespace {

constexpr double kGiga = 1e9;

struct Efficiency {
  std::string_view prefix;
  double multiprocessors, product, attention, flash2, engine;
  bool writes_beside;
};
constexpr Efficiency kEfficiencies[] = {
#define EFFICIENCY(prefix, multiprocessors, product, attention, flash2, engine, writes_beside) \
  {prefix, multiprocessors, product, attention, flash2, engine, writes_beside},
#include "price/devices.def"
#undef EFFICIENCY
};

Efficiency efficiency_of(std::string_view device) {
  Efficiency found{"", 108, 1, 1, 1, 1, false};
  for (const Efficiency& entry : kEfficiencies) {
    if (device.starts_with(entry.prefix) && entry.prefix.size() > found.prefix.size())
      found = entry;
  }
  return found;
}

}  // namespace

Platform lone_platform(const DeviceModel& device) {
  const Efficiency efficiency = efficiency_of(device.name);
  return {.name = device.name,
          .device = device,
          .multiprocessors = efficiency.multiprocessors,
          .product_share = efficiency.product,
          .attention_share = efficiency.attention,
          .flash2_share = efficiency.flash2,
          .engine_share = efficiency.engine,
          .writes_beside_products = efficiency.writes_beside,
          .per_node = 1,
          .per_host = 1};
}

Platform find_platform(const std::string& machine) {
  const Cluster cluster = find_cluster(machine, 1);
  if (cluster.device.empty())
    throw Error(fmt::format("machine: {} must state its device", machine));
  const std::int64_t node =
      std::max({1, cluster.facts.devices_per_host, cluster.facts.devices_per_nvlink_domain});
  // Two nodes, if the machine can have them, show the bandwidth of the NICs.
  const auto places = [&] {
    try {
      return places_of(Network(find_cluster(machine, 2 * node)));
    } catch (const Error&) {
      return places_of(Network(find_cluster(machine)));
    }
  }();
  Platform platform = lone_platform(find_device(cluster.device));
  platform.name = machine;
  platform.per_node = places.per_node;
  platform.within = {places.intra * kGiga};
  platform.per_host = std::max(1, cluster.facts.devices_per_host);
  platform.tiers = cluster.tiers;
  platform.extra_latency_us = places.extra_latency_us;
  // Without the switches above the two nodes.
  const double share = fabric_share(cluster.tiers, 2 * node / platform.per_host);
  const double nics = places.inter / static_cast<double>(places.per_node) / share;
  platform.across = {(places.nodes > 1 ? nics : places.intra) * kGiga};
  // With one device per node, all traffic crosses nodes.
  if (platform.per_node == 1) platform.within = platform.across;
  return platform;
}

}  // namespace foretrace
