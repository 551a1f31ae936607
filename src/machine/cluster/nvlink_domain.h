#pragma once

#include "foretrace/cluster.h"

namespace foretrace {

/// Devices that NVLinks and NVSwitches join with the first device, itself included.
std::int32_t nvlink_domain(const Cluster& cluster);

}  // namespace foretrace
