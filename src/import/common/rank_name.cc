#include "import/common/rank_name.h"

#include <cctype>
#include <string>

namespace foretrace {

namespace {

constexpr std::size_t kMaxDigits = 6;

/// The number after the last `word` in `name`, with at most one of "-_.=" between them.
std::optional<std::int32_t> number_behind(const std::string& name, std::string_view word) {
  for (std::size_t at = name.rfind(word); at != std::string::npos;
       at = at == 0 ? at - 1 : name.rfind(word, at - 1)) {
    std::size_t digit = at + word.size();
    if (digit < name.size() && std::string_view("-_.=").find(name[digit]) != std::string_view::npos)
      ++digit;
    std::int32_t number = 0;
    std::size_t digits = 0;
    for (; digit < name.size() && name[digit] >= '0' && name[digit] <= '9'; ++digit, ++digits) {
      if (digits < kMaxDigits) number = number * 10 + (name[digit] - '0');
    }
    if (digits > 0 && digits <= kMaxDigits) return number;
    if (at == 0) break;
  }
  return std::nullopt;
}

/// The name without its folder, its archive and the extensions of its format.
std::string_view bare_name(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of("/:") + 1);
  for (const std::string_view ending : {".gz", ".zst", ".json", ".et"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

}  // namespace

std::optional<std::int32_t> rank_in_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (const auto rank = number_behind(name, "rank")) return rank;
  return number_behind(name, "worker");
}

std::optional<std::int32_t> rank_of_execution_trace(std::string_view path) {
  if (const auto rank = rank_in_name(path)) return rank;
  const std::string_view name = bare_name(path);
  const std::size_t digits = name.size() - (name.find_last_not_of("0123456789") + 1);
  if (digits == 0 || digits == name.size() || digits > kMaxDigits) return std::nullopt;
  // A number between dots is the version of a schema, except in Chakra's files, where it is a rank.
  const char before = name[name.size() - digits - 1];
  const bool is_chakra = path.find(".et", path.find_last_of("/:") + 1) != std::string_view::npos;
  if (before != '_' && before != '-' && !(before == '.' && is_chakra)) return std::nullopt;
  const int number = std::stoi(std::string(name.substr(name.size() - digits)));
  const bool is_year = digits == 4 && number >= 1990 && number < 2100;
  return is_year ? std::nullopt : std::optional<std::int32_t>(number);
}

}  // namespace foretrace
