#include "infer/ranks/join.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/statistics.h"
#include "foretrace/error.h"
#include "infer/ranks/groups.h"
#include "infer/ranks/match.h"
#include "infer/ranks/world.h"

namespace foretrace {
namespace {

using namespace infer_detail;

// The clocks of ranks. A collective ends on all its ranks at the same time, so the differences
// between its recorded ends are the differences between the clocks.

/// Number of common ends needed to estimate drift. Chosen.
constexpr std::size_t kMinForDrift = 8;
/// At most about this many ends are compared in pairs. Chosen.
constexpr std::size_t kMaxForDrift = 300;
/// A drift counts only if it moves the ends by this many times their scatter. Chosen.
constexpr double kClearDrift = 4;
/// Quartz clocks are off by at most some hundred millionths; a greater slope is no drift. Recalled.
constexpr double kMaxDrift = 1e-3;

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
  const std::size_t stride = samples.size() / kMaxForDrift + 1;
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
  if (samples.size() < kMinForDrift || span <= 0) return plain;
  ClockRelation drifting = plain;
  drifting.drift = median_slope(samples, span);
  if (std::abs(drifting.drift) > kMaxDrift) return plain;
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

/// Compares ranks along a tree: each with the rank with which it shares most collectives. Ranks
/// that share none keep their recorded clock.
std::vector<RankClock> clocks_of(std::span<const Inference* const> ranks,
                                 const std::vector<Match>& matches) {
  return ClockFinder(ranks, matches).find();
}

/// If ends differ by more than this in the median, they belong to different collectives: ends of
/// the same collective differ by 3 to 22 us (measured).
constexpr Nanoseconds kMaxResidual = 1ms;
/// Ranks whose ends differ by less than this may have left together. Chosen.
constexpr Nanoseconds kTogether = 20us;

void check_numbers(std::span<const Inference* const> ranks, std::span<const std::string> labels) {
  std::map<std::int32_t, std::size_t> seen;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RecordedRank& rank = ranks[i]->rank;
    const auto [first, is_new] = seen.emplace(rank.number, i);
    if (!is_new)
      throw TraceError(fmt::format("one rank was recorded twice: {} and {}; give one run at a time",
                                   labels[first->second], labels[i]));
    if (rank.world_size > 1 && rank.number >= rank.world_size)
      throw TraceError(fmt::format("{}: it is rank {} of {}, but ranks are numbered from 0",
                                   labels[i], rank.number, rank.world_size));
    const RecordedRank& other = ranks.front()->rank;
    if (rank.world_size != other.world_size)
      throw TraceError(fmt::format(
          "{}: it is of a job of {} ranks, but {} is of one of {}; give ranks of one job",
          labels[i], rank.world_size, labels.front(), other.world_size));
  }
}

bool has_collectives(const Inference* rank) { return !rank->graph.collectives().empty(); }

/// Throws TraceError unless at least two ranks meet.
void check_shared(std::span<const Inference* const> ranks, std::span<const std::string> labels,
                  const std::vector<Match>& matches) {
  std::set<std::uint32_t> sharing;
  for (const Match& match : matches) {
    for (const Match::Member& member : match.members) sharing.insert(member.rank);
  }
  if (!sharing.empty()) return;
  const auto first = std::find_if(ranks.begin(), ranks.end(), has_collectives) - ranks.begin();
  throw TraceError(labels[static_cast<std::size_t>(first)] +
                   ": it shares no collective with another rank; give ranks of one job, or the "
                   "file of one rank, or the size of the job (--ranks) for ranks of groups that "
                   "were recorded in part");
}

/// Computes the clocks. A rank that meets no other recorded rank is compared with the ranks beside
/// which it stands for unrecorded ones.
std::vector<RankClock> clocks_with(std::span<const Inference* const> ranks,
                                   const std::vector<Match>& matches,
                                   const std::vector<Match>& patterns) {
  std::vector<RankClock> clocks = clocks_of(ranks, matches);
  const auto is_alone = [](const RankClock& clock) { return clock.common == 0; };
  if (patterns.empty() || std::none_of(clocks.begin() + 1, clocks.end(), is_alone)) return clocks;
  std::vector<Match> all = matches;
  all.insert(all.end(), patterns.begin(), patterns.end());
  return clocks_of(ranks, all);
}

/// Removes ranks whose ends belong to other collectives from the matches.
void drop_mismatched_ranks(std::span<const std::string> labels, std::vector<Match>& matches,
                           RankJoin& join) {
  const auto is_mismatched = [&](const Match::Member& member) {
    return join.clocks[member.rank].residual > kMaxResidual;
  };
  std::set<std::uint32_t> mismatched;
  for (Match& match : matches) {
    for (const Match::Member& member : match.members) {
      if (is_mismatched(member)) mismatched.insert(member.rank);
    }
    std::erase_if(match.members, is_mismatched);
  }
  std::erase_if(matches, [](const Match& match) { return match.members.size() < 2; });
  for (const std::uint32_t rank : mismatched)
    join.notes.add(Severity::warning,
                   "the collectives of a rank do not end when those of the others do; it is "
                   "replayed alone",
                   fmt::format("{}: {} off", labels[rank], to_text(join.clocks[rank].residual)));
}

class Splitter {
 public:
  Splitter(std::span<const Inference* const> ranks, const std::vector<RankGroup>& groups,
           RankJoin& join)
      : ranks_(ranks), groups_(groups), join_(join) {}

  void add(const Match& match) {
    MatchedCollective collective{.operation = described(*ranks_[match.members.front().rank],
                                                        match.members.front().occurrence),
                                 .group = groups_[match.group].name,
                                 .sequence = match.sequence,
                                 .matched = match.provenance};
    std::vector<Nanoseconds> starts;
    for (const Match::Member& member : match.members)
      starts.push_back(common(member, &Timeline::start));
    const auto [first, last] = std::minmax_element(starts.begin(), starts.end());
    collective.last = static_cast<std::size_t>(last - starts.begin());
    collective.arrival_skew = *last - *first;
    for (std::size_t i = 0; i < match.members.size(); ++i)
      collective.members.push_back(collective_member(match.members[i], starts[i], *last));
    note_last(match, starts, *last);
    collectives_.emplace_back(*last, std::move(collective));
  }

  void finish() {
    std::stable_sort(collectives_.begin(), collectives_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [time, collective] : collectives_)
      join_.collectives.push_back(std::move(collective));
  }

 private:
  TaskId task_of(const Match::Member& member) const {
    return ranks_[member.rank]->graph.collectives()[member.occurrence.number].task;
  }

  Nanoseconds common(const Match::Member& member, std::vector<Nanoseconds> Timeline::*side) const {
    const Nanoseconds own = (ranks_[member.rank]->recorded.*side)[index(task_of(member))];
    return join_.clocks[member.rank].common_time(own);
  }

  CollectiveMember collective_member(const Match::Member& member, Nanoseconds start,
                                     Nanoseconds last) {
    const TaskId task = task_of(member);
    const Timeline& recorded = ranks_[member.rank]->recorded;
    CollectiveMember found{.rank = member.stands_for,
                           .task = task,
                           .skew = {},
                           .recorded = recorded.finish[index(task)] - recorded.start[index(task)]};
    const Nanoseconds together = std::max(kTogether, 3 * join_.clocks[member.rank].residual);
    const Nanoseconds left = common(member, &Timeline::finish);
    found.left_early = left + together < last;
    if (left < last && !found.left_early) ++join_.crossed;
    found.skew = found.left_early ? 0ns : std::clamp(last - start, 0ns, found.recorded);
    if (member.stands_for != member.rank) return found;
    CollectiveTotals& totals = join_.ranks[member.rank];
    ++totals.matched;
    totals.waits += found.skew;
    totals.transfer += found.recorded - found.skew;
    return found;
  }

  /// Counts which rank entered last, and how late. Ranks that one recorded rank stands for enter
  /// with it.
  void note_last(const Match& match, const std::vector<Nanoseconds>& starts, Nanoseconds last) {
    Nanoseconds before = Nanoseconds::min();
    const Match::Member* late = nullptr;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const Match::Member& member = match.members[i];
      const bool is_late = starts[i] == last && member.stands_for == member.rank;
      if (is_late && late == nullptr) late = &member;
      if (starts[i] < last) before = std::max(before, starts[i]);
    }
    if (late == nullptr || before == Nanoseconds::min()) return;
    CollectiveTotals& totals = join_.ranks[late->rank];
    ++totals.times_last;
    totals.keeps_waiting += last - before;
  }

  std::span<const Inference* const> ranks_;
  const std::vector<RankGroup>& groups_;
  RankJoin& join_;
  std::vector<std::pair<Nanoseconds, MatchedCollective>> collectives_;
};

}  // namespace

RankJoin join_ranks(std::span<const Inference* const> ranks, std::span<const std::string> labels,
                    std::int32_t world_size) {
  CHECK(ranks.size() == labels.size());
  check_numbers(ranks, labels);
  RankJoin join;
  join.clocks.resize(ranks.size());
  join.ranks.resize(ranks.size());
  const bool joinable = std::any_of(ranks.begin(), ranks.end(), has_collectives) &&
                        (ranks.size() > 1 || world_size > 1);
  std::vector<RankGroup> groups;
  if (joinable) groups = groups_of(ranks, labels);
  std::vector<Match> matches = matches_in(groups, ranks, labels, join.notes);
  World world;
  if (world_size > 0) world = world_of(groups, ranks, labels, world_size, join.notes);
  for (std::size_t i = 0; i < world.stand_ins.size(); ++i)
    join.world.push_back({world.numbers[i], world.stand_ins[i]});
  if (!joinable) return join;
  if (ranks.size() > 1 && world.matches.empty()) check_shared(ranks, labels, matches);
  join.clocks = clocks_with(ranks, matches, world.patterns);
  drop_mismatched_ranks(labels, matches, join);
  std::erase_if(matches, [&](const Match& match) { return world.completed.contains(match.group); });
  Splitter splitter(ranks, groups, join);
  for (const Match& match : matches) splitter.add(match);
  for (const Match& match : world.matches) splitter.add(match);
  splitter.finish();
  for (std::size_t i = 0; i < ranks.size(); ++i)
    join.ranks[i].unmatched = ranks[i]->graph.collectives().size() - join.ranks[i].matched;
  return join;
}

}  // namespace foretrace
