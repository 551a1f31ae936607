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
struct ClockSample {
  std::int64_t own = 0, other = 0;
};

/// other = own + offset + drift * (own - pivot)
struct ClockRelation {
  std::int64_t offset = 0, pivot = 0;
  double drift = 0;
  std::int64_t residual = 0;
  std::size_t common = 0;

  std::int64_t other_time(std::int64_t own) const {
    return own + offset +
           static_cast<std::int64_t>(std::llround(drift * static_cast<double>(own - pivot)));
  }
};

std::int64_t typical_distance(const std::vector<ClockSample>& samples,
                              const ClockRelation& relation) {
  std::vector<std::int64_t> distances;
  for (const ClockSample& sample : samples)
    distances.push_back(std::abs(sample.other - relation.other_time(sample.own)));
  return median(std::move(distances));
}

/// Sets offset and residual for the given drift.
void centre(const std::vector<ClockSample>& samples, ClockRelation& relation) {
  relation.offset = 0;
  std::vector<std::int64_t> offsets;
  for (const ClockSample& sample : samples)
    offsets.push_back(sample.other - relation.other_time(sample.own));
  relation.offset = median(std::move(offsets));
  relation.residual = typical_distance(samples, relation);
}

/// The median of the slopes between all pairs of samples that are far enough apart (Theil, 1950;
/// Sen, 1968).
double median_slope(const std::vector<ClockSample>& samples, std::int64_t span) {
  std::vector<double> slopes;
  const std::size_t stride = samples.size() / kMostForDrift + 1;
  for (std::size_t i = 0; i < samples.size(); i += stride) {
    for (std::size_t j = i + stride; j < samples.size(); j += stride) {
      const std::int64_t apart = samples[j].own - samples[i].own;
      if (apart < span / 4) continue;
      const std::int64_t gained =
          (samples[j].other - samples[j].own) - (samples[i].other - samples[i].own);
      slopes.push_back(static_cast<double>(gained) / static_cast<double>(apart));
    }
  }
  return median(std::move(slopes));
}

ClockRelation relation_of(std::vector<ClockSample> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const ClockSample& a, const ClockSample& b) { return a.own < b.own; });
  const std::int64_t first = samples.front().own, span = samples.back().own - first;
  ClockRelation plain{.pivot = first + span / 2, .common = samples.size()};
  centre(samples, plain);
  if (samples.size() < kLeastForDrift || span <= 0) return plain;
  ClockRelation drifting = plain;
  drifting.drift = median_slope(samples, span);
  if (std::abs(drifting.drift) > kMostDrift) return plain;
  centre(samples, drifting);
  const double moved = std::abs(drifting.drift) * static_cast<double>(span);
  const double noise = static_cast<double>(std::max<std::int64_t>(drifting.residual, 1)) /
                       std::sqrt(static_cast<double>(samples.size()));
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
    const auto [known, unknown] = pair;
    std::vector<ClockSample> samples;
    for (const Match& match : matches_) {
      const Occurrence* own = nullptr;
      const Occurrence* other = nullptr;
      for (const Match::Member& member : match.members) {
        if (member.rank == unknown) own = &member.occurrence;
        if (member.rank == known) other = &member.occurrence;
      }
      if (own && other) samples.push_back({own->finish, other->finish});
    }
    const ClockRelation found = relation_of(std::move(samples));
    known_[unknown] = 1;
    // Chains through the clock of the known rank to the common clock.
    ClockRelation& relation = relations_[unknown];
    relation = found;
    const ClockRelation& front = relations_[known];
    relation.offset = front.other_time(found.other_time(found.pivot)) - found.pivot;
    relation.drift += front.drift;
  }

  void describe() {
    std::vector<std::int64_t> begins;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      begins.push_back(relations_[i].other_time(ranks_[i]->rank.origin.count()));
    const std::int64_t zero = begins.empty() ? 0 : begins.front();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const ClockRelation& from = relations_[i];
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
  std::vector<ClockRelation> relations_;  ///< By rank: relation to the common clock.
  std::map<Pair, std::size_t> common_;
};

}  // namespace

std::vector<RankClock> clocks_of(std::span<const Inference* const> ranks,
                                 const std::vector<Match>& matches) {
  return ClockFinder(ranks, matches).find();
}

}  // namespace foretrace::infer_detail
