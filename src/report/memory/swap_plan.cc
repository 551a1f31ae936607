#include "report/memory/swap_plan.h"

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
class Channel {
 public:
  std::optional<Slot> first_free(Nanoseconds from, Nanoseconds until, Nanoseconds length) const {
    Nanoseconds begin = from;
    auto busy = busy_.upper_bound(begin);
    if (busy != busy_.begin()) begin = std::max(begin, std::prev(busy)->second);
    for (; busy != busy_.end() && busy->first < begin + length; ++busy) begin = busy->second;
    if (begin + length > until) return {};
    return Slot{begin, begin + length};
  }

  std::optional<Slot> last_free(Nanoseconds from, Nanoseconds until, Nanoseconds length) const {
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

  void take(Slot slot) {
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
class UpperArea {
 public:
  UpperArea(const std::vector<MemoryCurve::Point>& curve, Nanoseconds end) {
    double all = 0;
    each_stretch(curve, end, [&](Nanoseconds, Nanoseconds length, double level) {
      all += level * seconds(length);
    });
    const double whole = curve.empty() ? 0 : seconds(end - curve.front().time);
    const double mean = whole > 0 ? all / whole : 0;
    double sum = 0;
    each_stretch(curve, end, [&](Nanoseconds from, Nanoseconds length, double level) {
      marks_.push_back({from, sum, std::max(level - mean, 0.0)});
      sum += marks_.back().height * seconds(length);
    });
  }

  double between(Nanoseconds from, Nanoseconds to) const { return upto(to) - upto(from); }

 private:
  struct Mark {
    Nanoseconds time{0};
    double sum = 0, height = 0;
  };

  static double seconds(Nanoseconds time) { return static_cast<double>(time.count()) / 1e9; }

  template <class Visit>
  static void each_stretch(const std::vector<MemoryCurve::Point>& curve, Nanoseconds end,
                           const Visit& visit) {
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const Nanoseconds until = i + 1 < curve.size() ? curve[i + 1].time : end;
      visit(curve[i].time, until - curve[i].time, static_cast<double>(curve[i].allocated.count));
    }
  }

  double upto(Nanoseconds time) const {
    const auto behind =
        std::upper_bound(marks_.begin(), marks_.end(), time,
                         [](Nanoseconds value, const Mark& mark) { return value < mark.time; });
    if (behind == marks_.begin()) return 0;
    const Mark& mark = *std::prev(behind);
    return mark.sum + mark.height * seconds(time - mark.time);
  }

  std::vector<Mark> marks_;
};

struct Absence {
  Bytes bytes{};
  Slot away;
};

/// Returns the highest level that is left with these absences.
Bytes highest(const std::vector<MemoryCurve::Point>& curve, const std::vector<Absence>& absences) {
  struct Change {
    Nanoseconds time{0};
    Bytes away{};
  };
  std::vector<Change> changes;
  for (const Absence& absence : absences) {
    if (absence.away.end <= absence.away.begin) continue;
    changes.push_back({absence.away.begin, absence.bytes});
    changes.push_back({absence.away.end, Bytes{-absence.bytes.count}});
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
std::vector<std::size_t> by_use(const UpperArea& area, const std::vector<SwapCandidate>& candidates,
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
  std::vector<Absence> each, planned;
  for (const SwapCandidate& one : candidates) {
    each.push_back(
        {one.bytes, {one.begin + time_for(one.bytes, out), one.end - time_for(one.bytes, in)}});
  }
  SwapEstimate plan;
  Channel away, back;
  for (const std::size_t i : by_use(UpperArea(curve, end), candidates, out, in)) {
    const SwapCandidate& one = candidates[i];
    const auto leaves = away.first_free(one.begin, one.end, time_for(one.bytes, out));
    if (!leaves) continue;
    const auto returns = back.last_free(leaves->end, one.end, time_for(one.bytes, in));
    if (!returns) continue;
    away.take(*leaves), back.take(*returns);
    planned.push_back({one.bytes, {leaves->end, returns->begin}});
    ++plan.moved, plan.moved_bytes += one.bytes;
  }
  plan.bound = highest(curve, each);
  plan.planned = highest(curve, planned);
  return plan;
}

}  // namespace foretrace
