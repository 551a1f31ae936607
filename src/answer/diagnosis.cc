#include "foretrace/answer/diagnosis.h"

#include <algorithm>

namespace foretrace {

std::size_t Diagnosis::count(Severity severity) const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return finding.severity == severity; }));
}

}  // namespace foretrace
