#include "infer/ranks/clocks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/statistics.h"

namespace foretrace::infer_detail {
namespace {

/// Number of common ends needed to estimate drift. Chosen.
constexpr std::size_t kLeastForDrift = 8;
/// At most about this many ends are compared in pairs. Chosen.
constexpr std::size_t kMostForDrift = 300;
/// A drift counts only if it moves the ends by this many times their scatter. Chosen.
constexpr double kClearDrift = 4;
/// Quartz clocks are off by at most some hundred millionths; a greater slope is no drift. Recalled.
constexpr double kMostDrift = 1e-3;

/// The same moment on the clocks of two ranks, in ns.
struct SameMoment {
  std::int64_t here = 0, there = 0;
};

/// there = here + offset + drift * (here - pivot)
struct Relation {
  std::int64_t offset = 0, pivot = 0;
  double drift = 0;
  std::int64_t residual = 0;
  std::size_t common = 0;

  std::int64_t there(std::int64_t here) const {
    return here + offset +
           static_cast<std::int64_t>(std::llround(drift * static_cast<double>(here - pivot)));
  }
};

std::int64_t typical_distance(const std::vector<SameMoment>& moments, const Relation& relation) {
  std::vector<std::int64_t> distances;
  for (const SameMoment& one : moments)
    distances.push_back(std::abs(one.there - relation.there(one.here)));
  return median(std::move(distances));
}

/// Sets offset and residual for the given drift.
void centre(const std::vector<SameMoment>& moments, Relation& relation) {
  relation.offset = 0;
  std::vector<std::int64_t> left;
  for (const SameMoment& one : moments) left.push_back(one.there - relation.there(one.here));
  relation.offset = median(std::move(left));
  relation.residual = typical_distance(moments, relation);
}

/// The median of the slopes between all pairs of moments that are far enough apart (Theil, 1950;
/// Sen, 1968).
double median_slope(const std::vector<SameMoment>& moments, std::int64_t span) {
  std::vector<double> slopes;
  const std::size_t stride = moments.size() / kMostForDrift + 1;
  for (std::size_t i = 0; i < moments.size(); i += stride) {
    for (std::size_t j = i + stride; j < moments.size(); j += stride) {
      const std::int64_t apart = moments[j].here - moments[i].here;
      if (apart < span / 4) continue;
      const std::int64_t gained =
          (moments[j].there - moments[j].here) - (moments[i].there - moments[i].here);
      slopes.push_back(static_cast<double>(gained) / static_cast<double>(apart));
    }
  }
  return median(std::move(slopes));
}

Relation relation_of(std::vector<SameMoment> moments) {
  std::sort(moments.begin(), moments.end(),
            [](const SameMoment& a, const SameMoment& b) { return a.here < b.here; });
  const std::int64_t first = moments.front().here, span = moments.back().here - first;
  Relation plain{.pivot = first + span / 2, .common = moments.size()};
  centre(moments, plain);
  if (moments.size() < kLeastForDrift || span <= 0) return plain;
  Relation drifting = plain;
  drifting.drift = median_slope(moments, span);
  if (std::abs(drifting.drift) > kMostDrift) return plain;
  centre(moments, drifting);
  const double moved = std::abs(drifting.drift) * static_cast<double>(span);
  const double noise = static_cast<double>(std::max<std::int64_t>(drifting.residual, 1)) /
                       std::sqrt(static_cast<double>(moments.size()));
  return moved > kClearDrift * noise && drifting.residual < plain.residual ? drifting : plain;
}

using Pair = std::pair<std::uint32_t, std::uint32_t>;

class ClockFinder {
 public:
  ClockFinder(std::span<const Inference* const> ranks, const std::vector<Match>& matches)
      : ranks_(ranks),
        matches_(matches),
        clocks_(ranks.size()),
        known_(ranks.size(), 0),
        relations_(ranks.size()) {
    for (const Match& match : matches) count(match);
  }

  std::vector<RankClock> find() {
    for (std::uint32_t root = 0; root < ranks_.size(); ++root) {
      if (known_[root] != 0) continue;
      known_[root] = 1;
      // A rank without common collectives keeps its own clock, and others follow it.
      while (const std::optional<Pair> next = closest()) follow(*next);
    }
    describe();
    return std::move(clocks_);
  }

 private:
  /// Counts common collectives by pair. Pairs of neighbours suffice for the tree; all pairs of a
  /// small group are counted, so that the tree is shallow.
  void count(const Match& match) {
    constexpr std::size_t kSmall = 16;
    const std::size_t size = match.members.size();
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t end = size <= kSmall ? size : std::min(i + 2, size);
      for (std::size_t j = i + 1; j < end; ++j)
        ++common_[{match.members[i].rank, match.members[j].rank}];
    }
  }

  /// Returns the pair of a known and an unknown rank that share most collectives.
  std::optional<Pair> closest() const {
    std::optional<Pair> best;
    std::size_t most = 0;
    for (const auto& [pair, number] : common_) {
      if (known_[pair.first] == known_[pair.second] || number <= most) continue;
      most = number;
      best = known_[pair.first] != 0 ? pair : Pair{pair.second, pair.first};
    }
    return best;
  }

  /// Derives the clock of the second rank from that of the first.
  void follow(const Pair& pair) {
    const auto [there, here] = pair;
    std::vector<SameMoment> moments;
    for (const Match& match : matches_) {
      const Occurrence* own = nullptr;
      const Occurrence* other = nullptr;
      for (const Match::Member& one : match.members) {
        if (one.rank == here) own = &one.what;
        if (one.rank == there) other = &one.what;
      }
      if (own && other) moments.push_back({own->finish, other->finish});
    }
    const Relation found = relation_of(std::move(moments));
    known_[here] = 1;
    // Chains through the clock of the known rank to the common clock.
    Relation& relation = relations_[here];
    relation = found;
    const Relation& front = relations_[there];
    relation.offset = front.there(found.there(found.pivot)) - found.pivot;
    relation.drift += front.drift;
  }

  void describe() {
    std::vector<std::int64_t> begins;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      begins.push_back(relations_[i].there(ranks_[i]->rank.origin.count()));
    const std::int64_t zero = begins.empty() ? 0 : begins.front();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const Relation& from = relations_[i];
      const std::int64_t origin = ranks_[i]->rank.origin.count();
      RankClock& clock = clocks_[i];
      clock.pivot = Nanoseconds(from.pivot == 0 ? 0 : from.pivot - origin);
      clock.drift = from.drift;
      clock.offset = Nanoseconds(origin + from.offset - zero);
      clock.skew = Nanoseconds(from.offset);
      clock.residual = Nanoseconds(from.residual);
      clock.common = from.common;
    }
  }

  std::span<const Inference* const> ranks_;
  const std::vector<Match>& matches_;
  std::vector<RankClock> clocks_;
  std::vector<char> known_;
  std::vector<Relation> relations_;  ///< By rank: relation to the common clock.
  std::map<Pair, std::size_t> common_;
};

}  // namespace

std::vector<RankClock> clocks_of(std::span<const Inference* const> ranks,
                                 const std::vector<Match>& matches) {
  return ClockFinder(ranks, matches).find();
}

}  // namespace foretrace::infer_detail
