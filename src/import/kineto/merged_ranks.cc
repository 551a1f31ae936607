#include "import/kineto/merged_ranks.h"

#include <algorithm>
#include <set>
#include <utility>

namespace foretrace {

namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kPidKey = "\"pid\"";
constexpr std::size_t kLongestPid = 128;
/// More marks than this are not ranks.
constexpr std::size_t kMaxMarks = 4096;

/// The text behind the key at the front of `text`; empty if it is a number or longer than a pid.
std::string_view pid_behind_key(std::string_view text) {
  text.remove_prefix(kPidKey.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n:"), text.size()));
  if (!text.starts_with('"')) return {};
  text = text.substr(1, kLongestPid);
  const std::size_t end = text.find('"');
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

using Marks = std::set<std::pair<std::size_t, std::string>>;  // "[rank2] " is before "[rank10] ".

/// Adds the marks in a part of the text. Returns where to go on when more of it has been read.
std::size_t find_marks(std::string_view text, bool more, Marks& marks) {
  constexpr std::size_t kContext = 2 * kLongestPid;
  for (std::size_t at = text.find(kPidKey); at != text.npos; at = text.find(kPidKey, at + 1)) {
    if (more && text.size() - at < kContext) return at;
    const std::string_view mark = rank_mark(pid_behind_key(text.substr(at)));
    if (!mark.empty()) marks.emplace(mark.size(), mark);
  }
  return text.size() - std::min(text.size(), kPidKey.size());
}

}  // namespace

std::string_view rank_mark(std::string_view process) {
  const std::size_t last = process.find_last_not_of(kDigits);
  if (last == std::string_view::npos || last + 1 == process.size()) return {};
  if (std::string_view(" :_/-").find(process[last]) == std::string_view::npos) return {};
  const std::string_view mark = process.substr(0, last + 1);
  return mark.find_first_of(kDigits) == std::string_view::npos ? std::string_view() : mark;
}

bool has_rank_marks(std::string_view head) {
  Marks marks;
  find_marks(head, false, marks);
  return !marks.empty();
}

std::vector<std::string> rank_marks(Source& bytes) {
  constexpr std::size_t kMarksPiece = 1 << 20;
  Marks marks;
  std::string window;
  for (bool more = true; more && marks.size() <= kMaxMarks;) {
    const std::size_t kept = window.size();
    window.resize(kept + kMarksPiece);
    const std::size_t got = bytes.read(window.data() + kept, kMarksPiece);
    window.resize(kept + got);
    more = got > 0;
    window.erase(0, find_marks(window, more, marks));
  }
  std::vector<std::string> all;
  if (marks.size() > kMaxMarks) return all;
  for (const auto& [size, mark] : marks) all.push_back(mark);
  return all;
}

}  // namespace foretrace
