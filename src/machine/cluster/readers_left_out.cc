// Stands in for the reader of NCCL's topologies in a build without expat, such as the explorer's
// page.

#include "foretrace/error.h"
#include "machine/cluster/readers.h"

namespace foretrace {

MachineFile read_nccl_topology(std::string_view) {
  throw Error(
      "NCCL's topologies cannot be read in a browser; convert the file to JSON with the "
      "command-line program");
}

}  // namespace foretrace
