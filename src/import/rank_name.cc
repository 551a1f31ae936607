#include "import/rank_name.h"

#include <cctype>
#include <string>

namespace foretrace {

namespace {

constexpr std::size_t kMostDigits = 6;

/// The number behind the last `word` in `name`, with at most one of "-_.=" between them.
std::optional<std::int32_t> number_behind(const std::string& name, std::string_view word) {
  for (std::size_t at = name.rfind(word); at != std::string::npos;
       at = at == 0 ? at - 1 : name.rfind(word, at - 1)) {
    std::size_t digit = at + word.size();
    if (digit < name.size() && std::string_view("-_.=").find(name[digit]) != std::string_view::npos)
      ++digit;
    std::int32_t number = 0;
    std::size_t digits = 0;
    for (; digit < name.size() && name[digit] >= '0' && name[digit] <= '9'; ++digit, ++digits) {
      if (digits < kMostDigits) number = number * 10 + (name[digit] - '0');
    }
    if (digits > 0 && digits <= kMostDigits) return number;
    if (at == 0) break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int32_t> rank_in_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (const auto rank = number_behind(name, "rank")) return rank;
  return number_behind(name, "worker");
}

}  // namespace foretrace
