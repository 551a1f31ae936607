#include "foretrace/answer/system.h"

#include <algorithm>

namespace foretrace {

bool SystemReport::holds() const {
  return failed.empty() &&
         std::ranges::all_of(rows, [](const SystemRow& row) { return row.failed.empty(); });
}

}  // namespace foretrace
