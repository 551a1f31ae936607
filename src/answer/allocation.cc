#include "foretrace/answer/allocation.h"

namespace foretrace {

double AllocationReplay::per_node_second() const {
  const double seconds = static_cast<double>(makespan.count()) * 1e-9;
  return mean_nodes > 0 && seconds > 0 ? samples / (mean_nodes * seconds) : 0;
}

}  // namespace foretrace
