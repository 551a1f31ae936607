#pragma once

// Declares write_<name>() for every line of reports.def. -Wmissing-declarations then rejects a
// report without a line, and the linker rejects a line without a report.

#include <iosfwd>

#include "foretrace/answer/prediction.h"

namespace foretrace {

#define REPORT(name, summary) void write_##name(const Prediction& prediction, std::ostream& out);
#include "report/prediction/reports.def"
#undef REPORT

}  // namespace foretrace
