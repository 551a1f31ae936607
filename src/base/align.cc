#include "base/align.h"

#include <algorithm>

namespace foretrace {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
using Items = std::span<const std::uint64_t>;

/// Aligns the middle parts, without the common front and back. `furthest_[k]` (`rounds_`) is the
/// greatest position in `a` reachable on diagonal k = position in a - position in b with the
/// differences so far.
class Search {
 public:
  Search(Items a, Items b) : a_(a), b_(b) {}

  std::optional<Pairs> find(std::ptrdiff_t most_differences) {
    const auto length_a = static_cast<std::ptrdiff_t>(a_.size());
    const auto length_b = static_cast<std::ptrdiff_t>(b_.size());
    const std::ptrdiff_t most = std::min(most_differences, length_a + length_b);
    for (std::ptrdiff_t d = 0; d <= most; ++d) {
      rounds_.emplace_back(static_cast<std::size_t>(2 * d + 1));
      for (std::ptrdiff_t k = -d; k <= d; k += 2) {
        std::ptrdiff_t x = d == 0 ? 0 : entry(d, k);
        while (x < length_a && x - k < length_b && at(a_, x) == at(b_, x - k)) ++x;
        rounds_.back()[static_cast<std::size_t>(k + d)] = x;
        if (k == length_a - length_b && x >= length_a) return trace_back(d, k);
      }
    }
    return {};
  }

 private:
  static std::uint64_t at(Items items, std::ptrdiff_t i) {
    return items[static_cast<std::size_t>(i)];
  }

  std::ptrdiff_t furthest(std::ptrdiff_t d, std::ptrdiff_t k) const {
    return rounds_[static_cast<std::size_t>(d)][static_cast<std::size_t>(k + d)];
  }

  /// Whether dropping an item of b reaches diagonal k best.
  bool drops_of_b(std::ptrdiff_t d, std::ptrdiff_t k) const {
    return k == -d || (k != d && furthest(d - 1, k - 1) < furthest(d - 1, k + 1));
  }

  /// Position in `a` at which diagonal k is entered after the d-th difference. It may lie outside
  /// of both sequences, but then no path leads back to it.
  std::ptrdiff_t entry(std::ptrdiff_t d, std::ptrdiff_t k) const {
    return drops_of_b(d, k) ? furthest(d - 1, k + 1) : furthest(d - 1, k - 1) + 1;
  }

  Pairs trace_back(std::ptrdiff_t d, std::ptrdiff_t k) const {
    Pairs pairs;
    for (;; --d) {
      const std::ptrdiff_t begin = d == 0 ? 0 : entry(d, k);
      for (std::ptrdiff_t x = furthest(d, k); x > begin; --x) {
        pairs.emplace_back(static_cast<std::uint32_t>(x - 1),
                           static_cast<std::uint32_t>(x - 1 - k));
      }
      if (d == 0) break;
      k = drops_of_b(d, k) ? k + 1 : k - 1;
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }

  Items a_, b_;
  std::vector<std::vector<std::ptrdiff_t>> rounds_;
};

}  // namespace

std::optional<Pairs> align(Items a, Items b, std::size_t most_differences) {
  std::size_t front = 0;
  while (front < a.size() && front < b.size() && a[front] == b[front]) ++front;
  std::size_t back = 0;
  while (back < a.size() - front && back < b.size() - front &&
         a[a.size() - 1 - back] == b[b.size() - 1 - back])
    ++back;
  const auto middle =
      Search(a.subspan(front, a.size() - front - back), b.subspan(front, b.size() - front - back))
          .find(static_cast<std::ptrdiff_t>(most_differences));
  if (!middle) return {};
  Pairs pairs;
  pairs.reserve(front + middle->size() + back);
  for (std::size_t i = 0; i < front; ++i) pairs.emplace_back(i, i);
  for (const auto& [x, y] : *middle) {
    pairs.emplace_back(static_cast<std::uint32_t>(x + front),
                       static_cast<std::uint32_t>(y + front));
  }
  for (std::size_t i = back; i > 0; --i) pairs.emplace_back(a.size() - i, b.size() - i);
  return pairs;
}

}  // namespace foretrace
