#include "base/numbers/range.h"

namespace foretrace {

std::optional<RangeText> split_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos) return std::nullopt;
  RangeText range{.first = text.substr(0, dots), .last = text.substr(dots + 2), .amount = {}};
  const std::size_t slash = range.last.rfind('/');
  if (slash == text.npos || slash + 1 == range.last.size()) return range;
  const std::string_view how = range.last.substr(slash + 1);
  if (how.front() == '+') {
    range.step = RangeStep::add;
  } else if (how.front() == 'x') {
    range.step = RangeStep::times;
  } else if (how.front() >= '0' && how.front() <= '9') {
    range.step = RangeStep::parts;
  } else {
    return range;
  }
  range.amount = how.substr(range.step == RangeStep::parts ? 0 : 1);
  range.last = range.last.substr(0, slash);
  return range;
}

}  // namespace foretrace
