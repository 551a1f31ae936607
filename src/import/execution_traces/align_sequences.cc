#include "import/execution_traces/align_sequences.h"

#include <algorithm>
#include <span>

#include "foretrace/trace.h"

namespace foretrace {

namespace {

constexpr std::size_t kGramSize = 8;          ///< Elements in a gram.
constexpr std::size_t kCommonGram = 256;      ///< More frequent grams do not identify a place.
constexpr std::size_t kSampledGrams = 65536;  ///< About this many grams of a long `a` vote.
constexpr std::int32_t kMaxEdits = 512;
constexpr std::int32_t kNowhere = -(1 << 30);

struct Gram {
  std::uint64_t hash;
  std::uint32_t at;
};

std::uint64_t hash_of(std::span<const std::uint32_t> gram) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (const std::uint32_t element : gram) hash = (hash ^ element) * 0xff51afd7ed558ccdU + 1;
  return hash ^ hash >> 29U;
}

std::vector<Gram> grams_of(const std::vector<std::uint32_t>& sequence, std::size_t size) {
  std::vector<Gram> grams;
  for (std::size_t i = 0; i + size <= sequence.size(); ++i) {
    grams.push_back({hash_of(std::span(sequence).subspan(i, size)), static_cast<std::uint32_t>(i)});
  }
  std::sort(grams.begin(), grams.end(), [](const Gram& a, const Gram& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.at < b.at;
  });
  return grams;
}

struct Anchor {
  std::size_t a = 0, b = 0;
};

/// Calls `visit` with the positions in `a` and `b` of each shared gram and the number of its
/// occurrences in `b`.
template <class Visit>
void each_shared_gram(const std::vector<std::uint32_t>& a, const std::vector<Gram>& grams,
                      std::size_t size, Visit&& visit) {
  const std::size_t stride = a.size() / kSampledGrams + 1;
  for (std::size_t i = 0; i + size <= a.size(); i += stride) {
    const Gram wanted{hash_of(std::span(a).subspan(i, size)), 0};
    const auto [first, last] =
        std::equal_range(grams.begin(), grams.end(), wanted,
                         [](const Gram& x, const Gram& y) { return x.hash < y.hash; });
    const auto count = static_cast<std::size_t>(last - first);
    if (count > kCommonGram) continue;
    for (auto gram = first; gram != last; ++gram) visit(i, std::size_t{gram->at}, count);
  }
}

/// Finds a pair of matching positions: at the rarest shared gram on the diagonal with the most
/// votes, within the stretch of diagonals with the most votes.
Anchor find_anchor(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  constexpr std::size_t kStretch = 256;
  const std::size_t size = std::min({kGramSize, a.size(), b.size()});
  const std::vector<Gram> grams = grams_of(b, size);
  const auto diagonal = [&](std::size_t i, std::size_t j) { return j + a.size() - i; };
  std::vector<std::uint32_t> stretches((a.size() + b.size()) / kStretch + 2);
  each_shared_gram(a, grams, size, [&](std::size_t i, std::size_t j, std::size_t) {
    ++stretches[diagonal(i, j) / kStretch];
  });
  std::size_t best = 0;
  std::uint32_t most = 0;
  for (std::size_t s = 0; s + 1 < stretches.size(); ++s) {
    if (stretches[s] + stretches[s + 1] > most) most = stretches[best = s] + stretches[s + 1];
  }
  std::vector<std::uint32_t> votes(2 * kStretch);
  const auto vote_of = [&](std::size_t i, std::size_t j) {
    return diagonal(i, j) - best * kStretch;  // Wraps if the diagonal is before the stretch.
  };
  each_shared_gram(a, grams, size, [&](std::size_t i, std::size_t j, std::size_t) {
    if (vote_of(i, j) < votes.size()) ++votes[vote_of(i, j)];
  });
  const auto winner =
      static_cast<std::size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
  Anchor anchor;
  std::size_t rarest = kCommonGram + 1;
  each_shared_gram(a, grams, size, [&](std::size_t i, std::size_t j, std::size_t count) {
    if (vote_of(i, j) != winner || count >= rarest) return;
    rarest = count;
    anchor = {i, j};
  });
  return anchor;
}

/// A view of a sequence from one element to the end, or backward from one element to the front.
class SequenceView {
 public:
  static SequenceView forward(const std::vector<std::uint32_t>& all, std::size_t from) {
    return {all.data() + from, 1, all.size() - from};
  }
  static SequenceView backward(const std::vector<std::uint32_t>& all, std::size_t before) {
    return {all.data() + before, -1, before};
  }
  std::int32_t size() const { return size_; }
  std::uint32_t operator[](std::int32_t i) const { return step_ > 0 ? at_[i] : at_[-1 - i]; }
  void drop(std::int32_t count) {
    at_ += step_ * count;
    size_ -= count;
  }

 private:
  SequenceView(const std::uint32_t* at, int step, std::size_t size)
      : at_(at), step_(step), size_(static_cast<std::int32_t>(size)) {}
  const std::uint32_t* at_;
  int step_;
  std::int32_t size_;
};

/// The furthest point that a number of edits reaches on each diagonal x - y. Level d has diagonals
/// -d to d.
class EditScript {
 public:
  EditScript(SequenceView a, SequenceView b) : a_(a), b_(b) {}

  /// Runs until `a` or the allowed number of edits is used up. Then end_x() and end_y() return how
  /// many elements of `a` and `b` it has aligned.
  void run() {
    while (!grow_level() && levels() < kMaxEdits) {
    }
  }
  std::int32_t end_x() const { return end_x_; }
  std::int32_t end_y() const { return end_x_ - end_diagonal_; }

  /// Calls `visit` with the positions of each match, from the last to the first.
  template <class Visit>
  void each_match(Visit&& visit) const {
    std::int32_t x = end_x_;
    std::int32_t diagonal = end_diagonal_;
    for (std::int32_t level = levels() - 1; level >= 0; --level) {
      const std::int32_t before = level == 0 ? 0 : entry(level, diagonal);
      for (; x > before; --x) visit(x - 1, x - 1 - diagonal);
      if (level == 0) return;
      if (comes_from_above(level, diagonal)) {
        ++diagonal;
      } else {
        --diagonal;
        --x;
      }
    }
  }

 private:
  std::int32_t levels() const { return static_cast<std::int32_t>(furthest_.size()); }
  std::int32_t furthest(std::int32_t level, std::int32_t diagonal) const {
    return diagonal < -level || diagonal > level
               ? kNowhere
               : furthest_[static_cast<std::size_t>(level)]
                          [static_cast<std::size_t>(diagonal + level)];
  }
  /// Whether the edit that leads to this diagonal skips an element of `b`.
  bool comes_from_above(std::int32_t level, std::int32_t diagonal) const {
    return furthest(level - 1, diagonal + 1) > furthest(level - 1, diagonal - 1);
  }
  /// The place in `a` at which a level enters a diagonal, before the matches on it.
  std::int32_t entry(std::int32_t level, std::int32_t diagonal) const {
    return comes_from_above(level, diagonal) ? furthest(level - 1, diagonal + 1)
                                             : furthest(level - 1, diagonal - 1) + 1;
  }

  /// Allows one more edit. Returns true if all of `a` is used up.
  bool grow_level() {
    const std::int32_t level = levels();
    std::vector<std::int32_t> reached(static_cast<std::size_t>(2 * level + 1), kNowhere);
    std::int32_t best = kNowhere;
    bool done = false;
    for (std::int32_t diagonal = -level; diagonal <= level && !done; diagonal += 2) {
      std::int32_t x = level == 0 ? 0 : entry(level, diagonal);
      if (x < 0 || x > a_.size() || x - diagonal > b_.size() || x < diagonal) continue;
      while (x < a_.size() && x - diagonal < b_.size() && a_[x] == b_[x - diagonal]) ++x;
      reached[static_cast<std::size_t>(diagonal + level)] = x;
      done = x == a_.size();
      if (!done && 2 * x - diagonal <= best) continue;
      best = 2 * x - diagonal;
      end_x_ = x;
      end_diagonal_ = diagonal;
    }
    if (best == kNowhere) return true;  // Both sequences are used up.
    furthest_.push_back(std::move(reached));
    return done;
  }

  SequenceView a_, b_;
  std::vector<std::vector<std::int32_t>> furthest_;
  std::int32_t end_x_ = 0;
  std::int32_t end_diagonal_ = 0;
};

/// Aligns `a` and `b` from their fronts. Calls `visit` with the distances of each match from the
/// fronts.
template <class Visit>
void extend(SequenceView a, SequenceView b, Visit&& visit) {
  std::int32_t from_a = 0, from_b = 0;
  while (a.size() > 0 && b.size() > 0) {
    EditScript script(a, b);
    script.run();
    script.each_match([&](std::int32_t x, std::int32_t y) { visit(from_a + x, from_b + y); });
    if (script.end_x() + script.end_y() == 0) return;
    a.drop(script.end_x());
    b.drop(script.end_y());
    from_a += script.end_x();
    from_b += script.end_y();
  }
}

}  // namespace

std::vector<std::uint32_t> align_sequences(const std::vector<std::uint32_t>& a,
                                           const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> positions(a.size(), kNone);
  if (a.empty() || b.empty()) return positions;
  const Anchor anchor = find_anchor(a, b);
  const auto match = [&](std::size_t i, std::size_t j) {
    positions[i] = static_cast<std::uint32_t>(j);
  };
  extend(SequenceView::forward(a, anchor.a), SequenceView::forward(b, anchor.b),
         [&](std::int32_t x, std::int32_t y) {
           match(anchor.a + static_cast<std::size_t>(x), anchor.b + static_cast<std::size_t>(y));
         });
  extend(SequenceView::backward(a, anchor.a), SequenceView::backward(b, anchor.b),
         [&](std::int32_t x, std::int32_t y) {
           match(anchor.a - 1 - static_cast<std::size_t>(x),
                 anchor.b - 1 - static_cast<std::size_t>(y));
         });
  return positions;
}

}  // namespace foretrace
