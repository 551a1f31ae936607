#include "transform/parallel/memory_rate.h"

#include "foretrace/error.h"

namespace foretrace {

Bandwidth memory_rate(const Graph& graph, const Context& context, const std::string& wanted_for) {
  if (context.machine != nullptr) return context.machine->memory_bandwidth;
  for (const std::string& name : graph.device_names()) {
    if (const DeviceModel* const device = device_recorded_as(name)) return device->memory_bandwidth;
  }
  throw Error(wanted_for +
              ": the trace does not say which device it was recorded on; give --machine");
}

}  // namespace foretrace
