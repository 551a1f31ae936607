#include "price/pipeline.h"

#include <algorithm>

namespace foretrace {

double pipeline_us(const std::vector<StageCost>& costs, const Layout& layout) {
  const auto stages = static_cast<std::size_t>(layout.pipeline);
  const auto m = static_cast<double>(layout.micro_batches());
  const double parts = static_cast<double>(layout.virtual_stages);
  double all = 0, longest = 0, send = 0;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    double one = 0;
    for (std::size_t i = stage; i < costs.size(); i += stages)
      one += costs[i].forward + costs[i].backward + costs[i].recompute;
    all += one, longest = std::max(longest, one), send = costs[stage].send;
  }
  if (stages == 1) return m * longest;
  const double pair = 2 * send;
  return m * longest + (all - longest) / parts + (m - 1) * pair * parts +
         static_cast<double>(stages - 1) * pair;
}

}  // namespace foretrace
