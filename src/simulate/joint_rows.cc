#include "simulate/joint_rows.h"

#include <algorithm>

#include "base/threads.h"
#include "simulate/pass.h"
#include "simulate/transfer_time.h"
#include "simulate/waits.h"

namespace foretrace {
namespace {

/// Adjusts waits with a tail behind a task of a collective, after its duration was reduced to the
/// transfer. `full_durations` lists the durations including the wait for others, in order of rows.
void shorten_overlaps(const std::vector<std::pair<std::uint32_t, Nanoseconds>>& full_durations,
                      Rows& rows) {
  if (rows.tail.empty()) return;
  for (std::size_t i = 0; i < rows.before.size(); ++i) {
    if ((rows.before[i] & Rows::kTail) == 0) continue;
    const std::uint32_t row = rows.before[i] & ~Rows::kFlags;
    const auto found = std::lower_bound(
        full_durations.begin(), full_durations.end(), row,
        [](const auto& entry, std::uint32_t wanted) { return entry.first < wanted; });
    if (found == full_durations.end() || found->first != row) continue;
    const Overlap before{TailShare::nearest(rows.tail[i]), Nanoseconds(rows.lag[i])};
    const Overlap after = shortened(before, found->second, rows.duration[row]);
    rows.tail[i] = after.tail.share(), rows.lag[i] = after.lag.count();
  }
}

}  // namespace

std::optional<JointRows> JointRows::make(std::span<const RankGraph> ranks,
                                         const std::vector<MatchedCollective>& collectives,
                                         RowOrder order) {
  for (const RankGraph& rank : ranks) {
    if (lane_not_in_line(*rank.graph) != kNoLane) return std::nullopt;
  }
  JointRows joint;
  joint.ranks_.resize(ranks.size());
  on_all_cores(ranks.size(), [&](std::size_t i) {
    joint.ranks_[i].rows = make_rows(*ranks[i].graph, order);
    joint.ranks_[i].begins = ranks[i].begins;
  });
  std::vector<std::vector<std::pair<std::uint32_t, Nanoseconds>>> full_durations(ranks.size());
  for (const MatchedCollective& collective : collectives) {
    const auto number = static_cast<std::uint32_t>(joint.members_.size());
    joint.members_.push_back(0);
    each_member(
        collective, [&](std::uint32_t rank) -> const Graph& { return *ranks[rank].graph; },
        [&](const CollectiveMember& member) {
          ++joint.members_[number];
          RankRows& rank = joint.ranks_[member.rank];
          const std::uint32_t row = rank.rows.position[index(member.task)];
          rank.stops.push_back({row, number, !member.left_early});
          if (member.left_early) return;
          Nanoseconds& duration = rank.rows.duration[row];
          full_durations[member.rank].emplace_back(row, duration);
          duration = transfer_of(member, duration);
        });
  }
  on_all_cores(ranks.size(), [&](std::size_t i) {
    std::sort(full_durations[i].begin(), full_durations[i].end());
    std::sort(joint.ranks_[i].stops.begin(), joint.ranks_[i].stops.end(),
              [](const Stop& a, const Stop& b) { return a.row < b.row; });
    shorten_overlaps(full_durations[i], joint.ranks_[i].rows);
  });
  if (!joint.find_order()) return std::nullopt;
  return joint;
}

bool JointRows::find_order() {
  std::vector<std::uint32_t> missing = members_, next(ranks_.size(), 0), ready;
  std::vector<std::vector<std::uint32_t>> blocked_ranks(members_.size());  // By collective.
  std::size_t done = 0;
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) ready.push_back(i);
  while (!ready.empty()) {
    const std::uint32_t rank = ready.back();
    ready.pop_back();
    order_.push_back(rank);
    if (next[rank] == ranks_[rank].stops.size()) {
      ++done;
      continue;
    }
    const Stop& stop = ranks_[rank].stops[next[rank]++];
    std::vector<std::uint32_t>& waiting = blocked_ranks[stop.collective];
    (stop.waits ? waiting : ready).push_back(rank);
    if (--missing[stop.collective] > 0) continue;
    ready.insert(ready.end(), waiting.begin(), waiting.end());
    waiting.clear();
  }
  return done == ranks_.size();
}

std::size_t JointRows::task_count() const {
  std::size_t count = 0;
  for (const RankRows& rank : ranks_) count += rank.rows.task_count();
  return count;
}

bool JointRows::is_overlapped(std::size_t rank, const std::vector<char>& rows) const {
  return std::ranges::any_of(ranks_[rank].rows.before, [&](std::uint32_t before) {
    return (before & Rows::kTail) != 0 && rows[before & ~Rows::kFlags] != 0;
  });
}

std::vector<EightTimes> JointRows::replay_eight(std::span<const RankSets> sets) const {
  thread_local std::vector<EightScratch> scratch;
  if (scratch.size() < ranks_.size()) scratch.resize(ranks_.size());
  std::vector<EightPass> passes;
  passes.reserve(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    passes.emplace_back(ranks_[i].rows, sets[i].durations, sets[i].probe_times, ranks_[i].begins,
                        scratch[i]);
  std::vector<EightTimes> last_enters(members_.size(), EightTimes{}), enters(ranks_.size());
  std::vector<std::uint32_t> next(ranks_.size(), 0);  // Next stop, by rank.
  for (const std::uint32_t number : order_) {
    const RankRows& rank = ranks_[number];
    EightPass& pass = passes[number];
    if (next[number] > 0) {
      const Stop& behind = rank.stops[next[number] - 1];
      pass.leave_next(enters[number],
                      behind.waits ? last_enters[behind.collective] : enters[number]);
    }
    if (next[number] == rank.stops.size()) {
      pass.run(rank.rows.task_count());
      continue;
    }
    const Stop& stop = rank.stops[next[number]++];
    pass.run(stop.row);
    enters[number] = pass.enter_next();
    for (std::size_t set = 0; set < kSetsAtOnce; ++set)
      last_enters[stop.collective][set] =
          std::max(last_enters[stop.collective][set], enters[number][set]);
  }
  std::vector<EightTimes> lengths;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const std::int64_t begins = ranks_[i].begins.count();
    for (std::int64_t& time : sets[i].probe_times.starts) time -= begins;
    for (std::int64_t& time : sets[i].probe_times.finishes) time -= begins;
    EightTimes& length = lengths.emplace_back(passes[i].greatest());
    for (std::int64_t& time : length) time -= begins;
  }
  return lengths;
}

/// How far the replay of a rank has progressed.
struct JointRows::Progress {
  std::vector<Nanoseconds> finish;  ///< By row, on the common clock.
  std::vector<Nanoseconds> enters;  ///< By stop, on the common clock.
  std::uint32_t row = 0;
};

std::vector<Timeline> JointRows::replay() const {
  std::vector<Progress> all(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) all[i].finish.resize(ranks_[i].rows.task_count());
  // Time at which the last member entered, by collective.
  std::vector<Nanoseconds> last_enters(members_.size(), 0ns);
  for (const std::uint32_t number : order_) {
    const RankRows& rank = ranks_[number];
    const Rows& rows = rank.rows;
    Progress& now = all[number];
    if (!now.enters.empty()) {
      const Stop& behind = rank.stops[now.enters.size() - 1];
      const Nanoseconds start = behind.waits ? last_enters[behind.collective] : now.enters.back();
      now.finish[now.row] = start + rows.duration[now.row];
      ++now.row;
    }
    const bool is_end = now.enters.size() == rank.stops.size();
    const std::uint32_t end = is_end ? static_cast<std::uint32_t>(rows.task_count())
                                     : rank.stops[now.enters.size()].row + 1;
    pass(rows, now.finish, now.row, end, rank.begins);
    if (is_end) continue;
    now.row = end - 1;
    now.enters.push_back(now.finish[now.row] - rows.duration[now.row]);
    Nanoseconds& latest = last_enters[rank.stops[now.enters.size() - 1].collective];
    latest = std::max(latest, now.enters.back());
  }
  std::vector<Timeline> timelines(ranks_.size());
  on_all_cores(ranks_.size(), [&](std::size_t i) {
    timelines[i] = timeline_of(ranks_[i], all[i]);
    all[i] = {};
  });
  return timelines;
}

Timeline JointRows::timeline_of(const RankRows& rank, Progress& done) {
  Timeline timeline;
  for (Nanoseconds& finish : done.finish) {
    finish -= rank.begins;
    timeline.length = std::max(timeline.length, finish);
  }
  const std::size_t count = rank.rows.task_count();
  timeline.start.resize(count), timeline.finish.resize(count);
  std::vector<Nanoseconds> start(count);
  for (std::size_t row = 0; row < count; ++row)
    start[row] = done.finish[row] - rank.rows.duration[row];
  for (std::size_t i = 0; i < rank.stops.size(); ++i)
    start[rank.stops[i].row] = done.enters[i] - rank.begins;
  for (std::size_t task = 0; task < count; ++task) {
    const std::uint32_t row = rank.rows.position[task];
    timeline.start[task] = start[row];
    timeline.finish[task] = done.finish[row];
  }
  return timeline;
}

}  // namespace foretrace
