#include "price/price.h"

namespace foretrace {

const std::vector<ConstantEntry>& constants() {
  static const std::vector<ConstantEntry> all = {
#define CONSTANT(name, spread, unit, help) \
  {#name, unit, help, Constants{}.name, spread, &Constants::name},
#include "price/constants.def"
#undef CONSTANT
  };
  return all;
}

}  // namespace foretrace
