#pragma once

// Readers of machine descriptions that other programs write.

#include <string_view>

#include "machine/cluster/machine_file.h"

namespace foretrace {

/// NCCL's topology, as written with NCCL_TOPO_DUMP_FILE: one host. Throws Error.
MachineFile read_nccl_topology(std::string_view xml);

/// ASTRA-sim's analytical network: topology, npus_count, bandwidth, latency. Throws Error.
MachineFile read_astra_network(std::string_view yaml);

}  // namespace foretrace
