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
  return {price.bubble * factor, (price.tensor + price.sends + price.gradients) * factor,
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

PlannedLayout compared(PlannedLayout one, const PlannedLayout& best) {
  if (!one.fits)
    one.loss = Loss::memory;
  else if (one.price.us > best.price.us)
    one.loss = loss_of(parts_of(one.price), parts_of(best.price));
  return one;
}

PlannedLayout planned_layout(const PlanSpace& space, const Layout& layout,
                             const StepCalibration& calibration, const PlannedLayout& best) {
  layout.check();
  StepCalibration own = calibration.clone();
  return compared(priced_layout(space, layout, own), best);
}

}  // namespace foretrace
