#include "foretrace/answer/collective.h"

namespace foretrace {

std::optional<double> CollectiveRow::error() const {
  if (!measured || measured->count() == 0) return std::nullopt;
  return static_cast<double>((time - *measured).count()) / static_cast<double>(measured->count());
}

}  // namespace foretrace
