// The readers of other programs' machines, in a build without their libraries (expat, libyaml):
// that of the explorer's page.

#include "foretrace/error.h"
#include "machine/cluster/readers.h"

namespace foretrace {

MachineFile read_nccl_topology(std::string_view) {
  throw Error("NCCL's topologies cannot be read in a browser; the program lists them as JSON");
}

MachineFile read_astra_network(std::string_view) {
  throw Error("ASTRA-sim's networks cannot be read in a browser; the program lists them as JSON");
}

}  // namespace foretrace
