#include "analysis/memory/swap_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace foretrace {
namespace {

struct Slot {
  Nanoseconds begin{0}, end{0};
};

/// One direction of the link. Adjacent busy intervals are merged, so that a search passes few.
class LinkDirection {
 public:
  std::optional<Slot> first_free_slot(Nanoseconds from, Nanoseconds until,
                                      Nanoseconds length) const {
    Nanoseconds begin = from;
    auto busy = busy_.upper_bound(begin);
    if (busy != busy_.begin()) begin = std::max(begin, std::prev(busy)->second);
    for (; busy != busy_.end() && busy->first < begin + length; ++busy) begin = busy->second;
    if (begin + length > until) return {};
    return Slot{begin, begin + length};
  }

  std::optional<Slot> last_free_slot(Nanoseconds from, Nanoseconds until,
                                     Nanoseconds length) const {
    Nanoseconds end = until;
    auto busy = busy_.lower_bound(end);
    while (busy != busy_.begin()) {
      --busy;
      if (busy->second <= end - length) break;
      end = busy->first;
    }
    if (end - length < from) return {};
    return Slot{end - length, end};
  }

  void reserve(Slot slot) {
    auto next = busy_.lower_bound(slot.begin);
    if (next != busy_.end() && next->first == slot.end) {
      slot.end = next->second;
      next = busy_.erase(next);
    }
    if (next != busy_.begin() && std::prev(next)->second == slot.begin) {
      std::prev(next)->second = slot.end;
      return;
    }
    busy_.emplace_hint(next, slot.begin, slot.end);
  }

 private:
  std::map<Nanoseconds, Nanoseconds> busy_;
};

/// The area between a level and its mean where the level is higher, in bytes times seconds.
class AreaAboveMean {
 public:
  AreaAboveMean(const std::vector<MemoryCurve::Point>& curve, Nanoseconds end) {
    double all = 0;
    each_segment(curve, end, [&](Nanoseconds, Nanoseconds length, double level) {
      all += level * seconds(length);
    });
    const double duration = curve.empty() ? 0 : seconds(end - curve.front().time);
    const double mean = duration > 0 ? all / duration : 0;
    double sum = 0;
    each_segment(curve, end, [&](Nanoseconds from, Nanoseconds length, double level) {
      points_.push_back({from, sum, std::max(level - mean, 0.0)});
      sum += points_.back().height * seconds(length);
    });
  }

  double between(Nanoseconds from, Nanoseconds to) const {
    return area_until(to) - area_until(from);
  }

 private:
  struct AreaPoint {
    Nanoseconds time{0};
    double sum = 0, height = 0;
  };

  static double seconds(Nanoseconds time) { return static_cast<double>(time.count()) / 1e9; }

  template <class Visit>
  static void each_segment(const std::vector<MemoryCurve::Point>& curve, Nanoseconds end,
                           const Visit& visit) {
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const Nanoseconds until = i + 1 < curve.size() ? curve[i + 1].time : end;
      visit(curve[i].time, until - curve[i].time, static_cast<double>(curve[i].allocated.count));
    }
  }

  double area_until(Nanoseconds time) const {
    const auto behind = std::upper_bound(
        points_.begin(), points_.end(), time,
        [](Nanoseconds value, const AreaPoint& point) { return value < point.time; });
    if (behind == points_.begin()) return 0;
    const AreaPoint& point = *std::prev(behind);
    return point.sum + point.height * seconds(time - point.time);
  }

  std::vector<AreaPoint> points_;
};

/// The time for which a block is only on the host.
struct SwapPeriod {
  Bytes bytes{};
  Slot away;
};

/// Returns the highest level that is left while these blocks are swapped out.
Bytes peak_with_swaps(const std::vector<MemoryCurve::Point>& curve,
                      const std::vector<SwapPeriod>& periods) {
  struct Change {
    Nanoseconds time{0};
    Bytes away{};
  };
  std::vector<Change> changes;
  for (const SwapPeriod& period : periods) {
    if (period.away.end <= period.away.begin) continue;
    changes.push_back({period.away.begin, period.bytes});
    changes.push_back({period.away.end, Bytes{-period.bytes.count}});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  Bytes most{}, away{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    while (at < changes.size() && changes[at].time <= curve[i].time) away += changes[at++].away;
    most = std::max(most, curve[i].allocated - away);
    // Blocks may come back before the level changes again.
    while (at < changes.size() && i + 1 < curve.size() && changes[at].time < curve[i + 1].time) {
      const Nanoseconds now = changes[at].time;
      while (at < changes.size() && changes[at].time == now) away += changes[at++].away;
      most = std::max(most, curve[i].allocated - away);
    }
  }
  while (at < changes.size() && !curve.empty()) {
    const Nanoseconds now = changes[at].time;
    while (at < changes.size() && changes[at].time == now) away += changes[at++].away;
    most = std::max(most, curve.back().allocated - away);
  }
  return most;
}

/// Returns the numbers of useful candidates, the most useful first.
std::vector<std::size_t> most_useful_first(const AreaAboveMean& area,
                                           const std::vector<SwapCandidate>& candidates,
                                           Bandwidth out, Bandwidth in) {
  std::vector<double> scores;
  for (const SwapCandidate& one : candidates) {
    scores.push_back(
        static_cast<double>(one.bytes.count) *
        area.between(one.begin + time_for(one.bytes, out), one.end - time_for(one.bytes, in)));
  }
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  while (!order.empty() && scores[order.back()] <= 0) order.pop_back();
  return order;
}

}  // namespace

SwapEstimate plan_swaps(const std::vector<MemoryCurve::Point>& curve, Nanoseconds end,
                        const std::vector<SwapCandidate>& candidates, Bandwidth out, Bandwidth in) {
  std::vector<SwapPeriod> unshared, planned;
  for (const SwapCandidate& one : candidates) {
    unshared.push_back(
        {one.bytes, {one.begin + time_for(one.bytes, out), one.end - time_for(one.bytes, in)}});
  }
  SwapEstimate plan;
  LinkDirection out_link, in_link;
  for (const std::size_t i : most_useful_first(AreaAboveMean(curve, end), candidates, out, in)) {
    const SwapCandidate& one = candidates[i];
    const auto copy_out = out_link.first_free_slot(one.begin, one.end, time_for(one.bytes, out));
    if (!copy_out) continue;
    const auto copy_in = in_link.last_free_slot(copy_out->end, one.end, time_for(one.bytes, in));
    if (!copy_in) continue;
    out_link.reserve(*copy_out), in_link.reserve(*copy_in);
    planned.push_back({one.bytes, {copy_out->end, copy_in->begin}});
    ++plan.moved, plan.moved_bytes += one.bytes;
  }
  plan.bound = peak_with_swaps(curve, unshared);
  plan.planned = peak_with_swaps(curve, planned);
  return plan;
}

}  // namespace foretrace
