#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "base/shown.h"
#include "foretrace/answer/trust.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"

namespace foretrace {

std::string markdown_trust(const std::string& warning, std::string_view subject) {
  if (warning.empty()) return {};
  return fmt::format("**Trust{} is {}**\n\n", subject, markdown_text(warning));
}

nlohmann::json to_json(const Trust& trust) {
  nlohmann::json reasons = nlohmann::json::array();
  for (const TrustReason& reason : trust.reasons) {
    reasons.push_back({{"name", reason.name},
                       {"grade", to_string(reason.grade)},
                       {"text", reason.text},
                       {"value", reason.value},
                       {"limit", reason.limit}});
  }
  return {{"grade", to_string(trust.grade())}, {"reasons", std::move(reasons)}};
}

}  // namespace foretrace
