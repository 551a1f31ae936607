// Stand-ins for the readers of other programs' machines in a build without their libraries (expat,
// libyaml), such as the explorer's page.

#include "foretrace/error.h"
#include "machine/cluster/readers.h"

namespace foretrace {

MachineFile read_nccl_topology(std::string_view) {
  throw Error(
      "NCCL's topologies cannot be read in a browser; convert the file to JSON with the "
      "command-line program");
}

MachineFile read_astra_network(std::string_view) {
  throw Error(
      "ASTRA-sim's networks cannot be read in a browser; convert the file to JSON with the "
      "command-line program");
}

}  // namespace foretrace
