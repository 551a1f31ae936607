#include "question/words/step_facts.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "question/words/wording.h"

namespace foretrace {
namespace {

std::string_view source_text(StepSource source) {
  switch (source) {
    case StepSource::none:
      break;
    case StepSource::markers:
      return " marked by the profiler";
    case StepSource::annotation:
      return " marked by named ranges";
    case StepSource::optimizer:
      return " marked by Optimizer.step";
    case StepSource::period:
      return " found by repetition alone";
  }
  return "";
}

}  // namespace

std::string step_facts(const StepTimes& times) {
  if (times.each.empty()) return "none found; the whole recording counts as one";
  std::string text = counted(times.steps(), "step");
  text += source_text(times.source);
  if (times.period > 1)
    text += fmt::format(", taken in groups of {} because they alternate", times.period);
  if (times.counted.size() < 2) return text;
  return fmt::format("{}, mean {}, slowest {}, spread {}", text, to_text(times.mean),
                     to_text(times.slowest), to_share(times.spread));
}

void add_step_facts(const StepTimes& times, nlohmann::json& object) {
  object["counted_steps"] = times.steps();
  object["mean_ns"] = times.mean.count();
  object["fastest_ns"] = times.fastest.count();
  object["slowest_ns"] = times.slowest.count();
  object["spread"] = times.spread;
  object["period"] = times.period;
  object["steps_found_by"] = to_string(times.source);
}

}  // namespace foretrace
