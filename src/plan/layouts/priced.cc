#include "plan/layouts/priced.h"

#include <array>

namespace foretrace {

std::string_view to_string(Loss loss) {
  constexpr std::array<std::string_view, 5> kNames = {"", "memory", "bubble", "network", "kernels"};
  return kNames[static_cast<std::size_t>(loss)];
}

Bytes PlanSpace::limit() const { return memory ? *memory : step.platform.device.memory; }

PriceParts parts_of(const CalibratedPrice& priced) {
  const StepPrice& price = priced.price;
  const double factor = priced.us / price.step;
  return {price.bubble * factor,
          (price.tensor + price.sends + price.gradients + price.late) * factor,
          (price.compute + price.optimizer + price.other) * factor};
}

Loss loss_of(const PriceParts& parts, const PriceParts& best) {
  const double bubble = parts.bubble - best.bubble, network = parts.network - best.network;
  const double kernels = parts.kernels - best.kernels;
  if (bubble >= network && bubble >= kernels) return Loss::bubble;
  return network >= kernels ? Loss::network : Loss::kernels;
}

PlannedLayout priced_layout(const PlanSpace& space, const Layout& layout,
                            StepCalibration& calibration) {
  PlannedLayout answer{.layout = layout};
  MeasuredStep step = space.step;
  step.layout = layout;
  answer.price = calibration.price(step);
  answer.cost = cost_of(space, answer.price.us, layout.devices());
  answer.fits = answer.price.memory.reserved <= space.limit();
  return answer;
}

PlannedLayout with_loss(PlannedLayout layout, const PlannedLayout& best) {
  if (!layout.fits)
    layout.loss = Loss::memory;
  else if (layout.price.us > best.price.us)
    layout.loss = loss_of(parts_of(layout.price), parts_of(best.price));
  return layout;
}

PlannedLayout planned_layout(const PlanSpace& space, const Layout& layout,
                             const StepCalibration& calibration, const PlannedLayout& best) {
  layout.check();
  StepCalibration copy = calibration.clone();
  return with_loss(priced_layout(space, layout, copy), best);
}

}  // namespace foretrace
