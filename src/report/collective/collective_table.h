#pragma once

#include <string>

#include "foretrace/answer/collective.h"
#include "report/words/table.h"

namespace foretrace {

Table collective_table(const CollectiveReport& report);
/// Returns a table of the rows that were simulated packet by packet.
Table packet_table(const CollectiveReport& report);
Table collective_error_table(const CollectiveReport& report);
/// Returns a heading such as "all_reduce on dgx-h100".
std::string collective_heading(const CollectiveReport& report);

}  // namespace foretrace
