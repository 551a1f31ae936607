#include "plan/layouts/ranking.h"

#include <algorithm>
#include <tuple>

namespace foretrace {
namespace {

bool is_faster(const Replayed& a, const Replayed& b) {
  return std::tie(a.us, a.place) < std::tie(b.us, b.place);
}

/// Returns whether `one` is slower than the other and better in neither memory nor price.
bool is_worse(const Replayed& one, const Replayed& than) {
  return than.us < one.us && than.reserved <= one.reserved && than.cost <= one.cost;
}

bool runs(std::uint8_t programs, std::size_t i) { return (programs >> i & 1) != 0; }

}  // namespace

void Ranking::add(const Replayed& one) {
  replayed_.push_back(one);
  for (std::size_t i = 0; i < launched_.size(); ++i) {
    if (runs(one.programs, i) && (!launched_[i] || is_faster(one, *launched_[i])))
      launched_[i] = one;
  }
  fastest_.push_back(one);
  std::ranges::sort(fastest_, is_faster);
  if (fastest_.size() > shown_) fastest_.pop_back();
  std::erase_if(efficient_, [&](const Replayed& other) { return is_worse(other, one); });
  if (std::ranges::none_of(efficient_, [&](const Replayed& other) { return is_worse(one, other); }))
    efficient_.push_back(one);
}

bool Ranking::may_show(std::size_t place, const Bound& bound) const {
  if (fastest_.size() < shown_ || bound.us <= fastest_.back().us) return true;
  for (std::size_t i = 0; i < launched_.size(); ++i) {
    if (runs(bound.programs, i) && (!launched_[i] || bound.us <= launched_[i]->us)) return true;
  }
  const Replayed best{place, bound.us, bound.cost, bound.reserved};
  return std::ranges::none_of(efficient_,
                              [&](const Replayed& other) { return is_worse(best, other); });
}

std::vector<Replayed> Ranking::front() const {
  std::vector<Replayed> all = replayed_, front;
  std::ranges::sort(all, [](const Replayed& a, const Replayed& b) {
    return std::tie(a.us, a.reserved, a.cost, a.place) <
           std::tie(b.us, b.reserved, b.cost, b.place);
  });
  for (const Replayed& one : all) {
    if (std::ranges::none_of(front, [&](const Replayed& other) {
          return other.reserved <= one.reserved && other.cost <= one.cost;
        }))
      front.push_back(one);
  }
  return front;
}

}  // namespace foretrace
