#include "foretrace/answer/trust.h"

#include <algorithm>

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

}  // namespace foretrace
