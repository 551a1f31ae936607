#pragma once

// The bandwidths that NCCL 2.30.7 assumes (src/graph/topo.cc and topo.h), in bytes per second each
// way.

#include <cstdint>
#include <string>

namespace foretrace {

/// For devices that are not behind a PCI link.
constexpr double kLocalBandwidth = 5000e9;

/// 3/4 of what the lanes carry; "" and 0 stand for x16 of the third generation.
double pci_bandwidth(const std::string& speed, double width);

/// One NVLink; architecture as in HostFacts.
double nvlink_bandwidth(std::int64_t architecture);

/// Vendor as in HostFacts; the model of Intel's CPUs of family 6.
double bandwidth_between_cpus(const std::string& vendor, double model);

}  // namespace foretrace
