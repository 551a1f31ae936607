#include "document/words/csv_text.h"

#include <cstdlib>
#include <fmt/core.h>

#include "base/shown.h"

namespace foretrace {

std::string csv_text(std::string_view text) {
  std::string all = "\"";
  for (const char c : csv_cell(text)) {
    if (c == '"') all += '"';
    all += c;
  }
  return all + "\"";
}

std::string microseconds_cell(Nanoseconds time) {
  const std::int64_t rest = std::abs(time.count() % 1000);
  return fmt::format("{}{}.{:03}", time < 0ns ? "-" : "", std::abs(time.count() / 1000), rest);
}

}  // namespace foretrace
