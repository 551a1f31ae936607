#include "machine/cluster/name_range.h"

#include <cstdint>
#include <fmt/core.h>

#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxNames = 1'000'000;

std::uint32_t number_in(std::string_view text) {
  if (const auto number = parse_number<std::uint32_t>(text)) return *number;
  throw Error(
      fmt::format("must have numbers between the brackets, as in gpu[0-7], got \"{}\"", text));
}

/// Parses a list such as "0,2,5-4".
std::vector<std::uint32_t> numbers_in(std::string_view list) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view part = list.substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const std::uint32_t first = number_in(part.substr(0, dash));
    const std::uint32_t last = dash == part.npos ? first : number_in(part.substr(dash + 1));
    if (std::max(first, last) - std::min(first, last) >= kMaxNames)
      throw Error("must be at most 1,000,000 names");
    for (std::uint32_t number = first;; first < last ? ++number : --number) {
      numbers.push_back(number);
      if (number == last) break;
    }
    begin = end + 1;
  }
  return numbers;
}

void add_names(std::string_view range, std::vector<std::string>& names) {
  const std::size_t open = range.find('[');
  if (open == range.npos) return names.emplace_back(range), void();
  const std::size_t close = range.find(']', open);
  if (close == range.npos)
    throw Error(fmt::format("must close its bracket, as in gpu[0-7], got \"{}\"", range));
  std::vector<std::string> rests;
  add_names(range.substr(close + 1), rests);
  for (const std::uint32_t number : numbers_in(range.substr(open + 1, close - open - 1))) {
    const std::string begin = fmt::format("{}{}", range.substr(0, open), number);
    if (names.size() + rests.size() > kMaxNames) throw Error("must be at most 1,000,000 names");
    for (const std::string& rest : rests) names.push_back(begin + rest);
  }
}

}  // namespace

std::vector<std::string> expand_names(std::string_view range) {
  std::vector<std::string> names;
  add_names(range, names);
  return names;
}

std::vector<std::string> expand_names(const std::vector<std::string>& ranges) {
  std::vector<std::string> names;
  for (const std::string& range : ranges) add_names(range, names);
  return names;
}

}  // namespace foretrace
