// Steps of an engine that serves a model, kind by kind.

#include <algorithm>
#include <fmt/core.h>

#include "question/diff/words.h"
#include "question/words/wording.h"

namespace foretrace {

Table kinds_table(const Diff& diff) {
  constexpr std::size_t kKinds = 12;
  Table table;
  table.heading = {"kind of step", "A", "B", "change", "steps", "most of it in"};
  table.left = {0, 5};
  for (const KindChange& kind : diff.kinds) {
    if (table.rows.size() == kKinds) break;
    const bool both = kind.steps_before > 0 && kind.steps_after > 0;
    const double change = both ? 100.0 * static_cast<double>((kind.after - kind.before).count()) /
                                     static_cast<double>(std::max(kind.before, 1ns).count())
                               : 0;
    table.rows.push_back(
        {kind.name, kind.steps_before > 0 ? to_text(kind.before) : "-",
         kind.steps_after > 0 ? to_text(kind.after) : "-",
         both ? fmt::format("{:+.1f} %", change) : "-",
         fmt::format("{}, {}", grouped(kind.steps_before), grouped(kind.steps_after)), kind.where});
  }
  return table;
}

}  // namespace foretrace
