#include "foretrace/answer/sizing.h"

namespace foretrace {

double SizingReport::overhead_share() const {
  return static_cast<double>(overhead->count()) / static_cast<double>(compute->count());
}

}  // namespace foretrace
