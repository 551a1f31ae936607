#include "foretrace/answer/plan.h"

namespace foretrace {

bool is_reproduced(const GeneratedRow& row) {
  if (row.ran_out || row.runs_out) return row.ran_out == row.runs_out;
  return row.measured && row.lower <= *row.measured && *row.measured <= row.upper;
}

}  // namespace foretrace
