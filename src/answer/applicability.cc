#include "foretrace/answer/applicability.h"

#include <fmt/core.h>

#include "foretrace/units.h"

namespace foretrace {

std::string to_text(const Applicability& applies) {
  if (applies.share >= 1) return {};
  if (applies.share <= 0) return "does not apply: " + applies.why_not;
  return fmt::format("applies to {}: {}", to_share(applies.share), applies.why_not);
}

}  // namespace foretrace
