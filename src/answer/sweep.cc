#include "foretrace/answer/sweep.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "foretrace/units.h"

namespace foretrace {

std::string plain_value(const std::string& value) {
  const nlohmann::json json = try_parse_json<nlohmann::json>(value);
  if (json.is_number_float()) return to_text(json.get<double>());
  return json.is_string() ? json.get<std::string>() : value;
}

bool Curve::satisfies(const SweepPoint& point) const {
  return until().empty() || (!point.verdicts.empty() && point.verdicts.front() == "holds");
}

}  // namespace foretrace
