#include "plan/layouts/ranking.h"

#include <algorithm>
#include <tuple>

namespace foretrace {
namespace {

bool is_faster(const ReplayedLayout& a, const ReplayedLayout& b) {
  return std::tie(a.us, a.candidate) < std::tie(b.us, b.candidate);
}

/// Returns whether `layout` is slower than the other and better in neither memory nor price.
bool is_worse(const ReplayedLayout& layout, const ReplayedLayout& other) {
  return other.us < layout.us && other.reserved <= layout.reserved && other.cost <= layout.cost;
}

bool runs(std::uint8_t programs, std::size_t i) { return (programs >> i & 1) != 0; }

}  // namespace

void Ranking::add(const ReplayedLayout& layout) {
  replayed_.push_back(layout);
  for (std::size_t i = 0; i < launched_.size(); ++i) {
    if (runs(layout.programs, i) && (!launched_[i] || is_faster(layout, *launched_[i])))
      launched_[i] = layout;
  }
  fastest_.push_back(layout);
  std::ranges::sort(fastest_, is_faster);
  if (fastest_.size() > shown_) fastest_.pop_back();
  std::erase_if(efficient_, [&](const ReplayedLayout& other) { return is_worse(other, layout); });
  if (std::ranges::none_of(efficient_,
                           [&](const ReplayedLayout& other) { return is_worse(layout, other); }))
    efficient_.push_back(layout);
}

bool Ranking::may_show(std::size_t candidate, const Bound& bound) const {
  if (fastest_.size() < shown_ || bound.us <= fastest_.back().us) return true;
  for (std::size_t i = 0; i < launched_.size(); ++i) {
    if (runs(bound.programs, i) && (!launched_[i] || bound.us <= launched_[i]->us)) return true;
  }
  const ReplayedLayout best{candidate, bound.us, bound.cost, bound.reserved};
  return std::ranges::none_of(efficient_,
                              [&](const ReplayedLayout& other) { return is_worse(best, other); });
}

std::vector<ReplayedLayout> Ranking::front() const {
  std::vector<ReplayedLayout> all = replayed_, front;
  std::ranges::sort(all, [](const ReplayedLayout& a, const ReplayedLayout& b) {
    return std::tie(a.us, a.reserved, a.cost, a.candidate) <
           std::tie(b.us, b.reserved, b.cost, b.candidate);
  });
  for (const ReplayedLayout& layout : all) {
    if (std::ranges::none_of(front, [&](const ReplayedLayout& other) {
          return other.reserved <= layout.reserved && other.cost <= layout.cost;
        }))
      front.push_back(layout);
  }
  return front;
}

}  // namespace foretrace
