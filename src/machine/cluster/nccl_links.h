#pragma once

// The bandwidths that NCCL 2.30.7 assumes (src/graph/topo.cc and topo.h), in bytes per second per
// direction.

#include <cstdint>
#include <string>

namespace foretrace {

/// Used for devices that are not behind a PCI link.
constexpr double kLocalBandwidth = 5000e9;

/// Returns 3/4 of the lanes' bandwidth; "" and 0 stand for x16 of the third generation.
double pci_bandwidth(const std::string& speed, double width);

/// Returns the bandwidth of one NVLink; `architecture` is as in HostFacts.
double nvlink_bandwidth(std::int64_t architecture);

/// `vendor` is as in HostFacts; `model` is the model number of Intel's family 6.
double bandwidth_between_cpus(const std::string& vendor, double model);

}  // namespace foretrace
