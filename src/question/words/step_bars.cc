#include "question/words/step_bars.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/numbers/scaling.h"

namespace foretrace {

BarRow step_bar(const std::string& name, const std::vector<StepPart>& parts,
                Nanoseconds StepPart::*time, Nanoseconds widest) {
  BarRow row{.name = name, .parts = {}};
  Nanoseconds at{0};
  for (const StepPart& part : parts) {
    const std::string part_name(part.name);
    row.parts.push_back(
        {.from = kWidestBar * ratio(at, widest),
         .width = kWidestBar * ratio(part.*time, widest),
         .label = fmt::format("{} {}", part_name, to_text(part.*time)),
         .letter = part_name,
         .colour = "part-" + part_name,
         .tooltip = fmt::format("{}, {}: {}", name, part_name, to_text(part.*time))});
    at += part.*time;
  }
  row.value = to_text(at);
  return row;
}

std::string parts_legend(const std::vector<StepPart>& parts) {
  std::vector<LegendEntry> legend;
  for (const StepPart& part : parts) {
    const auto is_named = [&](const LegendEntry& entry) { return entry.text == part.name; };
    if ((part.baseline > 0ns || part.predicted > 0ns) && std::ranges::none_of(legend, is_named))
      legend.push_back({"part-" + std::string(part.name), std::string(part.name)});
  }
  return html_legend(legend);
}

std::string step_bars(const std::string& described, const std::string& first,
                      const std::string& second, const Breakdown& before, const Breakdown& after) {
  const auto all = step_parts(before, after);
  const std::vector<StepPart> parts(all.begin(), all.end());
  Nanoseconds one{0}, other{0};
  for (const StepPart& part : parts) one += part.baseline, other += part.predicted;
  const Nanoseconds widest = second.empty() ? one : std::max(one, other);
  std::vector<BarRow> rows = {step_bar(first, parts, &StepPart::baseline, widest)};
  if (!second.empty()) rows.push_back(step_bar(second, parts, &StepPart::predicted, widest));
  return html_bars(described, rows) + parts_legend(parts);
}

}  // namespace foretrace
