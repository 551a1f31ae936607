#include "foretrace/answer/validation.h"

#include <algorithm>

namespace foretrace {

double SideRemoval::excess() const {
  if (recorded <= 0ns) return 0;
  return static_cast<double>((remaining - (recorded - alone)).count()) /
         static_cast<double>(recorded.count());
}

std::vector<std::string_view> ValidatedRank::broken() const {
  std::vector<std::string_view> names;
  if (!against.empty()) return names;  // Only the errors were asked for.
  const auto check = [&](bool holds, std::string_view name) {
    if (!holds) names.push_back(name);
  };
  check(validation.scale_holds, "scale");
  check(validation.neutral_holds, "neutral");
  check(validation.shrink_holds, "shrink");
  check(validation.export_holds, "export");
  check(validation.without.device.holds(), "without device");
  check(validation.without.host.holds(), "without host");
  return names;
}

}  // namespace foretrace
