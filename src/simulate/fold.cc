#include "simulate/fold.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace foretrace {
namespace {

/// A hash of 128 bits, from two independent sums: ranks that differ collide with probability
/// 2^-128.
struct Digest {
  std::uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f;

  void add(std::uint64_t value) {
    a = (a ^ value) * 0xff51afd7ed558ccd;
    a ^= a >> 32U;
    b = (b + value) * 0xc4ceb9fe1a85ec53;
    b ^= b >> 29U;
  }
  void add(Nanoseconds time) { add(static_cast<std::uint64_t>(time.count())); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

/// Covers everything that times depend on; ranks' numbers and names are left out.
Digest digest_of(const Graph& graph) {
  Digest digest;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(LaneId{i});
    digest.add(static_cast<std::uint64_t>(lane.discipline));
    digest.add(lane.capacity.bytes_per_second);
    digest.add(lane.slice);
    digest.add(std::uint64_t{index(graph.first(LaneId{i}))});
  }
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    digest.add(task.duration), digest.add(task.gap), digest.add(task.tail.share());
    digest.add(static_cast<std::uint64_t>(task.bytes.count));
    digest.add(static_cast<std::uint64_t>(task.priority));
    digest.add(std::uint64_t{index(graph.lane_of(TaskId{i}))} << 32U |
               index(graph.next(TaskId{i})));
  }
  graph.each_dependency([&](const Dependency& wait) {
    digest.add(std::uint64_t{index(wait.before)} << 32U | index(wait.after));
    digest.add(wait.lag), digest.add(wait.tail.share());
    digest.add(static_cast<std::uint64_t>(wait.anchor));
  });
  return digest;
}

/// How a rank takes part in a collective: task, skew, recorded duration, and whether it left early.
/// `ColouredRole` adds the colour of the rank.
using Role = std::tuple<std::uint32_t, Nanoseconds, Nanoseconds, bool>;
using ColouredRole = std::pair<std::uint32_t, Role>;

Role role_of(const CollectiveMember& member) {
  return {index(member.task), member.skew, member.recorded, member.left_early};
}

/// Ranks with different numbers of tasks or different begin times are never alike.
using Size = std::pair<Nanoseconds, std::size_t>;
Size size_of(const RankGraph& rank) { return {rank.begins, rank.graph->task_count()}; }

class Refinement {
 public:
  Refinement(std::span<const RankGraph> ranks, const std::vector<MatchedCollective>& collectives)
      : collectives_(collectives), colour_(ranks.size()), roles_(ranks.size()) {
    std::map<Size, std::set<const Graph*>> candidates;
    for (const RankGraph& rank : ranks) candidates[size_of(rank)].insert(rank.graph);
    std::unordered_map<const Graph*, Digest> digests;
    std::map<std::pair<Digest, Size>, std::uint32_t> numbers;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const Size size = size_of(ranks[i]);
      const auto [found, is_new] = digests.try_emplace(ranks[i].graph);
      // A graph that is the only one of its size needs no digest.
      if (is_new && candidates[size].size() > 1) found->second = digest_of(*ranks[i].graph);
      const auto number = static_cast<std::uint32_t>(numbers.size());
      colour_[i] = numbers.try_emplace({found->second, size}, number).first->second;
    }
    colours_ = numbers.size();
    for (std::uint32_t i = 0; i < collectives.size(); ++i) {
      for (const CollectiveMember& member : collectives[i].members)
        roles_[member.rank].emplace_back(i, role_of(member));
    }
  }

  std::vector<std::uint32_t> run() {
    for (std::size_t before = 0; before != colours_;) {
      before = colours_;
      refine();
    }
    std::vector<std::uint32_t> first(colours_, UINT32_MAX), first_alike(colour_.size());
    for (std::uint32_t i = 0; i < colour_.size(); ++i) {
      first[colour_[i]] = std::min(first[colour_[i]], i);
      first_alike[i] = first[colour_[i]];
    }
    return first_alike;
  }

 private:
  /// Numbers the collectives; collectives with the same kinds of members share a number.
  std::vector<std::uint32_t> number_collectives() const {
    std::map<std::set<ColouredRole>, std::uint32_t> numbers;
    std::vector<std::uint32_t> all;
    for (const MatchedCollective& collective : collectives_) {
      std::set<ColouredRole> kinds;
      for (const CollectiveMember& member : collective.members)
        kinds.emplace(colour_[member.rank], role_of(member));
      const auto number = static_cast<std::uint32_t>(numbers.size());
      all.push_back(numbers.try_emplace(std::move(kinds), number).first->second);
    }
    return all;
  }

  void refine() {
    const std::vector<std::uint32_t> kind = number_collectives();
    std::map<std::pair<std::uint32_t, std::vector<ColouredRole>>, std::uint32_t> numbers;
    std::vector<std::uint32_t> next(colour_.size());
    for (std::size_t i = 0; i < colour_.size(); ++i) {
      std::vector<ColouredRole> kinds;
      for (const auto& [collective, role] : roles_[i]) kinds.emplace_back(kind[collective], role);
      std::sort(kinds.begin(), kinds.end());
      const auto number = static_cast<std::uint32_t>(numbers.size());
      next[i] = numbers.try_emplace({colour_[i], std::move(kinds)}, number).first->second;
    }
    colour_ = std::move(next);
    colours_ = numbers.size();
  }

  const std::vector<MatchedCollective>& collectives_;
  std::vector<std::uint32_t> colour_;  ///< By rank.
  /// By rank: each of its collectives, and its role in it.
  std::vector<std::vector<ColouredRole>> roles_;
  std::size_t colours_ = 0;
};

}  // namespace

std::vector<std::uint32_t> alike_ranks(std::span<const RankGraph> ranks,
                                       const std::vector<MatchedCollective>& collectives) {
  return Refinement(ranks, collectives).run();
}

std::vector<MatchedCollective> folded_collectives(const std::vector<MatchedCollective>& collectives,
                                                  std::span<const std::uint32_t> first_alike) {
  std::vector<MatchedCollective> folded;
  std::set<std::pair<std::uint32_t, TaskId>> taken;
  for (const MatchedCollective& collective : collectives) {
    // A task belongs to one collective. A collective adds something only if it has a task of a
    // first rank that no kept collective has; otherwise it repeats one.
    const auto is_new = std::any_of(collective.members.begin(), collective.members.end(),
                                    [&](const CollectiveMember& member) {
                                      return first_alike[member.rank] == member.rank &&
                                             !taken.contains({member.rank, member.task});
                                    });
    if (!is_new) continue;
    MatchedCollective kept = collective;
    kept.members.clear();
    for (CollectiveMember member : collective.members) {
      member.rank = first_alike[member.rank];
      if (taken.emplace(member.rank, member.task).second) kept.members.push_back(member);
    }
    folded.push_back(std::move(kept));
  }
  return folded;
}

}  // namespace foretrace
