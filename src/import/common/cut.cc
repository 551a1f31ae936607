#include "import/common/cut.h"

#include <fmt/core.h>

namespace foretrace {

void note_cut(Notes& notes, std::string_view where, const std::string& damage, std::int64_t at) {
  notes.add(Severity::warning,
            fmt::format("the trace is cut off{}{}{}; everything before that was read",
                        where.empty() ? "" : " ", where, damage.empty() ? "" : ": " + damage),
            "at byte " + std::to_string(at));
}

}  // namespace foretrace
