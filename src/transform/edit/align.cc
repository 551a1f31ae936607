#include "transform/edit/align.h"

#include <algorithm>
#include <optional>

namespace foretrace {
namespace {

/// Diagonal k holds pairs (i, i - k). `reach` of d differences is how far into `own` one gets on
/// each diagonal from -d to d.
class Differences {
 public:
  Differences(std::span<const std::uint32_t> own, std::span<const std::uint32_t> other)
      : own_(own),
        other_(other),
        n_(static_cast<std::ptrdiff_t>(own.size())),
        m_(static_cast<std::ptrdiff_t>(other.size())) {}

  /// The pairs of equal elements, in order; nothing with more than `most` differences.
  std::optional<std::vector<std::pair<std::size_t, std::size_t>>> pairs(std::size_t most) {
    const auto limit = static_cast<std::ptrdiff_t>(most);
    for (std::ptrdiff_t d = 0; d <= std::min(limit, n_ + m_); ++d) {
      reach_.emplace_back(static_cast<std::size_t>(2 * d + 1), -1);
      for (std::ptrdiff_t k = -d; k <= d; k += 2) {
        const std::ptrdiff_t i = furthest(d, k);
        at(d, k) = i;
        if (i >= n_ && i - k >= m_) return walk_back(d, k);
      }
    }
    return std::nullopt;
  }

 private:
  std::ptrdiff_t& at(std::ptrdiff_t d, std::ptrdiff_t k) {
    return reach_[static_cast<std::size_t>(d)][static_cast<std::size_t>(k + d)];
  }

  /// Whether one gets onto diagonal k by an element of `other` (down) or of `own`.
  bool down(std::ptrdiff_t d, std::ptrdiff_t k) {
    return k == -d || (k != d && at(d - 1, k - 1) < at(d - 1, k + 1));
  }

  std::ptrdiff_t entered(std::ptrdiff_t d, std::ptrdiff_t k) {
    if (d == 0) return 0;
    return down(d, k) ? at(d - 1, k + 1) : at(d - 1, k - 1) + 1;
  }

  std::ptrdiff_t furthest(std::ptrdiff_t d, std::ptrdiff_t k) {
    std::ptrdiff_t i = entered(d, k);
    while (i < n_ && i - k < m_ && i - k >= 0 &&
           own_[static_cast<std::size_t>(i)] == other_[static_cast<std::size_t>(i - k)]) {
      ++i;
    }
    return i;
  }

  std::vector<std::pair<std::size_t, std::size_t>> walk_back(std::ptrdiff_t d, std::ptrdiff_t k) {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    for (;; --d) {
      for (std::ptrdiff_t i = at(d, k); i > entered(d, k); --i) {
        found.emplace_back(static_cast<std::size_t>(i - 1), static_cast<std::size_t>(i - 1 - k));
      }
      if (d == 0) break;
      k += down(d, k) ? 1 : -1;
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  std::span<const std::uint32_t> own_, other_;
  std::ptrdiff_t n_, m_;
  std::vector<std::vector<std::ptrdiff_t>> reach_;
};

}  // namespace

std::vector<AlignedRun> align(std::span<const std::uint32_t> own,
                              std::span<const std::uint32_t> other, std::size_t most) {
  std::vector<AlignedRun> runs;
  std::size_t i = 0, j = 0;
  const auto differ_until = [&](std::size_t end, std::size_t other_end) {
    if (i < end || j < other_end) runs.push_back({i, end, j, other_end, false});
    i = end, j = other_end;
  };
  const auto pairs = Differences(own, other).pairs(most);
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
