#include <algorithm>

#include "foretrace/cluster.h"
#include "machine/cluster/machine_file.h"

namespace foretrace {

const std::vector<std::string_view>& link_kind_names() {
  static const std::vector<std::string_view> names = {"nvlink", "pcie", "cpu", "network", "other"};
  return names;
}

LinkKind link_kind_named(std::string_view name) {
  const auto& names = link_kind_names();
  return static_cast<LinkKind>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::string_view to_string(LinkKind kind) {
  return link_kind_names()[static_cast<std::size_t>(kind)];
}

std::string_view to_string(NodeKind kind) {
  constexpr std::string_view kNames[] = {"host", "device", "nic", "switch"};
  return kNames[static_cast<std::size_t>(kind)];
}

Nanoseconds usual_latency(LinkKind kind) {
  constexpr Nanoseconds kRecalled[] = {250ns, 250ns, 100ns, 600ns, 250ns};
  return kRecalled[static_cast<std::size_t>(kind)];
}

}  // namespace foretrace
