#include "transform/edit/align.h"

#include "base/align.h"

namespace foretrace {

std::vector<AlignedRun> aligned_runs(std::span<const std::uint64_t> own,
                                     std::span<const std::uint64_t> other, std::size_t most) {
  std::vector<AlignedRun> runs;
  std::size_t i = 0, j = 0;
  const auto differ_until = [&](std::size_t end, std::size_t other_end) {
    if (i < end || j < other_end) runs.push_back({i, end, j, other_end, false});
    i = end, j = other_end;
  };
  const auto pairs = align(own, other, most);
  if (pairs) {
    for (const auto& [a, b] : *pairs) {
      differ_until(a, b);
      if (runs.empty() || !runs.back().equal) runs.push_back({a, a, b, b, true});
      runs.back().end = i = a + 1;
      runs.back().other_end = j = b + 1;
    }
  }
  differ_until(own.size(), other.size());
  return runs;
}

}  // namespace foretrace
