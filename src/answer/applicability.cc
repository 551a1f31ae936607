#include "foretrace/answer/applicability.h"

#include <fmt/core.h>

#include "foretrace/units.h"

namespace foretrace {

std::string to_text(const Applicability& applies) {
  if (applies.share >= 1) return {};
  if (applies.share <= 0) return "does not apply: " + applies.why_not;
  const bool rounds_to_none = applies.share < 0.0005;
  return fmt::format("applies to {}: {}",
                     rounds_to_none ? "less than 0.1 %" : to_share(applies.share), applies.why_not);
}

}  // namespace foretrace
