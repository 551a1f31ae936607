#pragma once

#include <string>

namespace foretrace {

/// Returns "assumed:" as "Assumed".
inline std::string capitalized_title(std::string title) {
  if (title.ends_with(':')) title.pop_back();
  if (!title.empty() && title.front() >= 'a' && title.front() <= 'z')
    title.front() = static_cast<char>(title.front() - 'a' + 'A');
  return title;
}

}  // namespace foretrace
