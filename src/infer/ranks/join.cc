#include "infer/ranks/join.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>

#include "foretrace/error.h"
#include "infer/ranks/clocks.h"
#include "infer/ranks/groups.h"
#include "infer/ranks/match.h"
#include "infer/ranks/world.h"

namespace foretrace {
namespace {

using namespace infer_detail;

/// If ends differ by more than this in the median, they belong to different collectives: ends of
/// the same collective differ by 3 to 22 us (measured).
constexpr Nanoseconds kMostResidual = 1ms;
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
    return join.clocks[member.rank].residual > kMostResidual;
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
                                 .matched = match.provenance,
                                 .members = {}};
    std::vector<Nanoseconds> starts;
    for (const Match::Member& member : match.members)
      starts.push_back(common(member, &Timeline::start));
    const auto last = std::max_element(starts.begin(), starts.end());
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
