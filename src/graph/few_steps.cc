#include "graph/few_steps.h"

#include <array>
#include <charconv>
#include <fmt/core.h>

namespace foretrace {

std::string few_steps_as_json(const StepRule& rule) {
  return fmt::format("[{}, {}, {}]", rule.recorded_median.count(), rule.recorded_mean.count(),
                     rule.host_surplus.count());
}

void take_few_steps(std::string_view json, StepRule& rule) {
  std::array<std::int64_t, 3> times{};
  for (std::int64_t& time : times) {
    const std::size_t digit = json.find_first_of("0123456789");
    if (digit == json.npos) return;
    json.remove_prefix(digit);
    const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), time);
    if (error != std::errc()) return;
    json.remove_prefix(static_cast<std::size_t>(end - json.data()));
  }
  const auto [median, mean, surplus] = times;
  if (median <= 0 || mean <= 0) return;
  rule.recorded_median = Nanoseconds(median), rule.recorded_mean = Nanoseconds(mean);
  rule.host_surplus = Nanoseconds(surplus);
}

}  // namespace foretrace
