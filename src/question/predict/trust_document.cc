#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/shown.h"
#include "foretrace/answer/trust.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"

namespace foretrace {

std::string_view to_string(Grade grade) {
  switch (grade) {
    case Grade::good:
      return "good";
    case Grade::fair:
      return "fair";
    case Grade::poor:
      return "poor";
  }
  return "poor";
}

Grade Trust::grade() const {
  Grade worst = Grade::good;
  for (const TrustReason& reason : reasons) worst = std::max(worst, reason.grade);
  return worst;
}

const TrustReason* Trust::reason(std::string_view name) const {
  const auto found = std::find_if(reasons.begin(), reasons.end(),
                                  [&](const TrustReason& one) { return one.name == name; });
  return found == reasons.end() ? nullptr : &*found;
}

std::string trust_sentence(const Trust& trust) {
  std::string text;
  for (const Grade grade : {Grade::poor, Grade::fair}) {
    for (const TrustReason& reason : trust.reasons) {
      if (reason.grade == grade) text += (text.empty() ? "" : "; ") + reason.text;
    }
  }
  return text;
}

std::string trust_warning(const Trust& trust) {
  if (trust.grade() != Grade::poor) return {};
  std::string text;
  for (const TrustReason& reason : trust.reasons) {
    if (reason.grade == Grade::poor) text += (text.empty() ? "poor: " : "; ") + reason.text;
  }
  return text;
}

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
                       {"value", number_json(reason.value)},
                       {"limit", number_json(reason.limit)}});
  }
  return {{"grade", to_string(trust.grade())}, {"reasons", std::move(reasons)}};
}

}  // namespace foretrace
