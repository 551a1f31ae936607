#include "machine/cluster/nvlink_domain.h"

#include <vector>

namespace foretrace {

std::int32_t nvlink_domain(const Cluster& cluster) {
  std::vector<std::vector<std::uint32_t>> beside(cluster.nodes.size());
  for (const ClusterLink& link : cluster.links) {
    if (link.kind == LinkKind::nvlink) beside[link.from].push_back(link.to);
  }
  std::vector<bool> seen(cluster.nodes.size());
  std::vector<std::uint32_t> found = {cluster.placement.front()};
  seen[found.front()] = true;
  std::int32_t devices = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (cluster.nodes[found[i]].kind == NodeKind::device) ++devices;
    for (const std::uint32_t next : beside[found[i]]) {
      if (!seen[next]) found.push_back(next), seen[next] = true;
    }
  }
  return devices;
}

}  // namespace foretrace
