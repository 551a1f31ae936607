#include "foretrace/answer/figure.h"

#include <cmath>

#include "foretrace/answer/prediction.h"

namespace foretrace {
namespace {

/// Formats with four significant digits; an exponent appears only below 1e-3 and from 1e9 on.
std::string number_text(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e9)) return to_text(value);
  int decimals = 3;
  for (double edge = 10; decimals > 0 && size >= edge; edge *= 10) --decimals;
  if (value == std::floor(value)) decimals = 0;
  return to_fixed(value, decimals);
}

}  // namespace

std::string to_text(const Figure& figure) {
  if (const auto* time = std::get_if<Nanoseconds>(&figure.value)) return to_text(*time);
  if (const auto* bytes = std::get_if<Bytes>(&figure.value)) return to_text(*bytes);
  return number_text(std::get<double>(figure.value));
}

double magnitude(const Figure& figure) {
  if (const auto* time = std::get_if<Nanoseconds>(&figure.value))
    return static_cast<double>(time->count());
  if (const auto* bytes = std::get_if<Bytes>(&figure.value))
    return static_cast<double>(bytes->count);
  return std::get<double>(figure.value);
}

std::string json_key(const Figure& figure) {
  const bool is_time = std::holds_alternative<Nanoseconds>(figure.value);
  const bool is_bytes = std::holds_alternative<Bytes>(figure.value);
  if (is_time && !figure.name.ends_with("_ns")) return figure.name + "_ns";
  if (is_bytes && !figure.name.ends_with("_bytes")) return figure.name + "_bytes";
  return figure.name;
}

Nanoseconds total_time(const std::vector<AppliedStep>& steps, std::string_view figure) {
  Nanoseconds sum{0};
  for (const AppliedStep& step : steps) {
    for (const Figure& one : step.figures) {
      const auto* const time = std::get_if<Nanoseconds>(&one.value);
      if (one.name == figure && time != nullptr) sum += *time;
    }
  }
  return sum;
}

}  // namespace foretrace
