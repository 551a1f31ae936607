#include "foretrace/answer/serving.h"

#include <algorithm>

namespace foretrace {

const LatencyFigure* ServingPoint::latency(const std::string& name) const {
  const auto found = std::ranges::find(latencies, name, &LatencyFigure::name);
  return found == latencies.end() ? nullptr : &*found;
}

}  // namespace foretrace
