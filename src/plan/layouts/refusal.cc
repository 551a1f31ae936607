#include "plan/layouts/refusal.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>

#include "foretrace/error.h"
#include "plan/layouts/priced.h"

namespace foretrace {
namespace {

std::string refusal_of(const PlanSpace& space, const Layout& layout,
                       const StepCalibration& calibration) {
  try {
    StepCalibration copy = calibration.clone();
    priced_layout(space, layout, copy);
  } catch (const Error& error) {
    return error.what();
  }
  return "no schedule can run any of them";
}

/// However much is sharded, a device holds the whole weights of a layer while the layer runs.
void check_layer(const PlanSpace& space, const std::vector<Candidate>& candidates) {
  constexpr double kWeight = 2;
  double least = std::numeric_limits<double>::max();
  for (const Candidate& candidate : candidates) {
    double largest = 0;
    for (const LayerRow& row : space.step.workload->layers({.tensor = candidate.tensor,
                               .context = candidate.context,
                               .expert = candidate.expert,
                               .expert_tensor = candidate.expert == 1 ? candidate.tensor : 1}))
      largest = std::max(largest, kWeight * (row.parameters + row.expert_parameters));
    least = std::min(least, largest);
  }
  const Bytes layer{static_cast<std::int64_t>(least)};
  if (layer > space.limit())
    throw Error(fmt::format("--memory-limit: must hold the weights of one layer, {}, got {}",
                            to_text(layer), to_text(space.limit())));
}

}  // namespace

void refuse_space(const PlanSpace& space, const std::vector<Candidate>& candidates,
                  const std::vector<Bound>& bounds, const StepCalibration& calibration) {
  std::size_t smallest = candidates.size(), count = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (!bounds[i].is_served) continue;
    ++count;
    if (smallest == candidates.size() || bounds[i].reserved < bounds[smallest].reserved)
      smallest = i;
  }
  if (count == 0)
    throw Error("no layout is left: " +
                refusal_of(space, layout_of(candidates.front(), space.step.layout), calibration));
  check_layer(space, candidates);
  throw Error(fmt::format(
      "no layout is left: memory took the last {} of them; {} needs the least, {} of {}", count,
      layout_text(layout_of(candidates[smallest], space.step.layout)),
      to_text(Bytes{bounds[smallest].reserved}), to_text(space.limit())));
}

}  // namespace foretrace
