#pragma once

#include "foretrace/cluster.h"

namespace foretrace {

/// Returns the number of devices that NVLinks and NVSwitches connect with the first device,
/// including it.
std::int32_t nvlink_domain(const Cluster& cluster);

}  // namespace foretrace
