#pragma once

#include <string>

#include "foretrace/answer/collective.h"
#include "report/words/table.h"

namespace foretrace {

Table collective_table(const CollectiveReport& report);
/// For rows that were worked out as packets.
Table packet_table(const CollectiveReport& report);
Table collective_error_table(const CollectiveReport& report);
/// "all_reduce on dgx-h100"
std::string collective_heading(const CollectiveReport& report);

}  // namespace foretrace
