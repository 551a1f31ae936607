#include "foretrace/report.h"
#include "report/prediction/registered.h"

namespace foretrace {

const std::vector<ReportEntry>& reports() {
  static const std::vector<ReportEntry> entries = {
#define REPORT(name, summary) {#name, summary, write_##name},
#include "report/prediction/reports.def"
#undef REPORT
  };
  return entries;
}

}  // namespace foretrace
