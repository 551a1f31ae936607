#include "infer/ranks/world.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "foretrace/error.h"

namespace foretrace::infer_detail {
namespace {

/// The layout of a group among the ranks: `size` ranks at a distance of `stride`. A message has
/// size 0 and goes to the rank at a distance of `stride`, or comes from there.
struct GroupLayout {
  std::int32_t stride = 1, size = 0;
  bool sends = false;
  std::int32_t number = 0;  ///< Number among the groups of a rank with the same layout.

  bool is_message() const { return size == 0; }
  std::int32_t place_of(std::int32_t rank) const {
    return is_message() ? rank / std::abs(stride) : rank / stride % size;
  }
  /// The ranks that form such a group with `rank`, including itself.
  std::vector<std::int32_t> members_with(std::int32_t rank) const {
    if (is_message()) return {std::min(rank, rank + stride), std::max(rank, rank + stride)};
    std::vector<std::int32_t> members;
    for (std::int32_t i = 0; i < size; ++i) members.push_back(rank + (i - place_of(rank)) * stride);
    return members;
  }
  /// The layout of the same group as another member sees it.
  GroupLayout seen_from(std::int32_t own, std::int32_t other) const {
    if (!is_message() || own == other) return *this;
    return {-stride, size, !sends, number};
  }
  /// Orders messages first, then groups of neighbours: the order in which places are compared.
  friend auto operator<=>(const GroupLayout& a, const GroupLayout& b) {
    const auto key = [](const GroupLayout& layout) {
      return std::tuple(!layout.is_message(), layout.stride, layout.size, layout.sends,
                        layout.number);
    };
    return key(a) <=> key(b);
  }
};

/// Returns nullopt if the members are not evenly spaced.
std::optional<GroupLayout> layout_of(const std::vector<std::int32_t>& members) {
  const std::int32_t stride = members[1] - members[0];
  const GroupLayout found{stride, static_cast<std::int32_t>(members.size())};
  if (stride < 1 || found.members_with(members[0]) != members) return {};
  return found;
}

class WorldFinder {
 public:
  WorldFinder(std::vector<RankGroup>& groups, std::span<const Inference* const> ranks,
              std::span<const std::string> labels, std::int32_t size, Notes& notes)
      : groups_(groups),
        ranks_(ranks),
        labels_(labels),
        size_(size),
        notes_(notes),
        lines_(ranks.size()) {}

  World find() {
    check_size();
    for (std::uint32_t i = 0; i < groups_.size(); ++i) add_layouts(i);
    list_ranks();
    for (std::uint32_t i = 0; i < world_.numbers.size(); ++i) add_groups_led_by(i);
    return std::move(world_);
  }

 private:
  std::int32_t number_of(std::uint32_t rank) const { return ranks_[rank]->rank.number; }

  bool is_numbered_from_zero() const {
    for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
      if (number_of(i) != static_cast<std::int32_t>(i)) return false;
    }
    return true;
  }

  void check_size() const {
    const auto recorded = static_cast<std::int32_t>(ranks_.size());
    std::int32_t greatest = 0;
    for (std::uint32_t i = 0; i < ranks_.size(); ++i) greatest = std::max(greatest, number_of(i));
    if (size_ < recorded || size_ <= greatest)
      throw Error(fmt::format(
          "--ranks: must be at least {}, because rank {} was recorded, got {}; for a part of "
          "the job give only the files of its ranks",
          greatest + 1, greatest, size_));
    if (is_numbered_from_zero())
      check_multiple(recorded, "recorded ranks, which are numbered from 0");
  }

  void check_multiple(std::int32_t divisor, const std::string& unit) const {
    if (size_ % divisor == 0) return;
    throw Error(
        fmt::format("--ranks: must be a multiple of the {} {}, got {}", divisor, unit, size_));
  }

  /// Returns the members of a group. If they were not recorded, all ranks, as far as recorded; none
  /// if the recorded size differs.
  std::vector<std::int32_t> members_of(const RankGroup& group) const {
    if (!group.members.empty()) return group.members;
    std::vector<std::int32_t> all;
    const bool repeats = is_numbered_from_zero() && ranks_.size() > 1;
    const auto count = repeats ? static_cast<std::int32_t>(ranks_.size()) : size_;
    if (group.size > 0 && group.size != count) return {};
    for (std::int32_t i = 0; i < count; ++i) all.push_back(i);
    return all;
  }

  void add_layouts(std::uint32_t number) {
    const RankGroup& group = groups_[number];
    const std::vector<std::int32_t> members = members_of(group);
    for (const GroupLine& line : group.lines) {
      const std::int32_t own = number_of(line.rank);
      std::optional<GroupLayout> layout;
      if (group.receiver >= 0)
        layout = {members[0] == own ? members[1] - own : members[0] - own, 0,
                  own != group.receiver};
      else if (members.size() > 1)
        layout = layout_of(members);
      if (!layout) {
        notes_.add(Severity::info,
                   "groups whose ranks are not evenly spaced: their collectives keep the time "
                   "they took on ranks that were not recorded",
                   group.name);
        return;
      }
      group_of_.emplace(&line, number);
      if (!layout->is_message() && size_ != ranks_.front()->rank.world_size)
        check_multiple(layout->stride * layout->size,
                       fmt::format("ranks that groups such as {} span", group.name));
      while (!lines_[line.rank].try_emplace(*layout, &line).second) ++layout->number;
    }
  }

  void list_ranks() {
    std::map<std::int32_t, std::uint32_t> recorded;
    for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
      recorded.emplace(number_of(i), i);
      add_rank(number_of(i), i);
    }
    if (!is_numbered_from_zero()) find_late_ranks();
    for (std::int32_t number = 0; number < size_; ++number) {
      if (!recorded.contains(number)) add_rank(number, most_similar_to(number));
    }
  }

  void add_rank(std::int32_t number, std::uint32_t recorded) {
    index_.emplace(number, static_cast<std::uint32_t>(world_.stand_ins.size()));
    world_.stand_ins.push_back(recorded);
    world_.numbers.push_back(number);
  }

  Nanoseconds time_in_collectives(std::uint32_t rank) const {
    Nanoseconds sum{0};
    for (const RecordedCollective& collective : ranks_[rank]->graph.collectives())
      sum += ranks_[rank]->recorded.finish[index(collective.task)] -
             ranks_[rank]->recorded.start[index(collective.task)];
    return sum;
  }

  /// Finds ranks for which others wait: they hardly wait themselves. That is a property of the
  /// rank, not of its place.
  void find_late_ranks() {
    constexpr std::int64_t kHardly = 4;
    std::vector<Nanoseconds> times;
    for (std::uint32_t i = 0; i < ranks_.size(); ++i) times.push_back(time_in_collectives(i));
    const Nanoseconds most = std::ranges::max(times);
    for (const Nanoseconds own : times) is_late_.push_back(most > kHardly * own ? 1 : 0);
  }

  /// Returns the recorded rank that shares most places in groups, comparing the most important
  /// places first.
  std::uint32_t most_similar_to(std::int32_t number) const {
    if (is_numbered_from_zero())
      return static_cast<std::uint32_t>(static_cast<std::size_t>(number) % ranks_.size());
    using Difference = std::tuple<std::vector<char>, bool, std::int32_t>;
    std::optional<Difference> least;
    std::uint32_t best = 0;
    for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
      std::vector<char> differing_places;
      for (const auto& [layout, line] : lines_[i])
        differing_places.push_back(layout.place_of(number) != layout.place_of(number_of(i)) ? 1
                                                                                            : 0);
      Difference difference{std::move(differing_places), is_late_[i] != 0,
                            std::abs(number - number_of(i))};
      if (least && *least <= difference) continue;
      least = std::move(difference);
      best = i;
    }
    return best;
  }

  bool is_recorded(std::uint32_t rank) const { return rank < ranks_.size(); }

  /// Adds the collectives of the groups in which this rank is the first.
  void add_groups_led_by(std::uint32_t rank) {
    const std::int32_t number = world_.numbers[rank];
    for (const auto& [layout, line] : lines_[world_.stand_ins[rank]]) {
      std::vector<std::uint32_t> members;
      for (const std::int32_t other : layout.members_with(number)) {
        const auto found = index_.find(other);
        if (found == index_.end()) continue;
        const GroupLayout theirs = layout.seen_from(number, other);
        if (lines_[world_.stand_ins[found->second]].contains(theirs))
          members.push_back(found->second);
      }
      if (members.size() < 2 || std::ranges::min(members) != rank) continue;
      if (std::ranges::all_of(members, [&](std::uint32_t member) { return is_recorded(member); }))
        continue;
      add_group(layout, number, members);
    }
  }

  void add_group(const GroupLayout& layout, std::int32_t number,
                 const std::vector<std::uint32_t>& members) {
    RankGroup group;
    group.size = std::ssize(members);
    std::map<std::uint32_t, const GroupLine*> lines;  // Lines of the members, by recorded rank.
    for (const std::uint32_t member : members) {
      const std::uint32_t recorded = world_.stand_ins[member];
      lines[recorded] = lines_[recorded].at(layout.seen_from(number, world_.numbers[member]));
      if (is_recorded(member)) world_.completed.insert(group_of_.at(lines[recorded]));
      group.members.push_back(world_.numbers[member]);
    }
    group.name = words_for(group.members);
    const auto place = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back(std::move(group));
    for (const Match& pattern : pattern_of(lines)) {
      Match match = pattern;
      match.group = place;
      match.members.clear();
      for (const std::uint32_t member : members) {
        for (const Match::Member& recorded : pattern.members) {
          if (recorded.rank == world_.stand_ins[member])
            match.members.push_back({recorded.rank, recorded.occurrence, member});
        }
      }
      if (match.members.size() > 1) world_.matches.push_back(std::move(match));
    }
  }

  /// Returns the matched collectives of lines that are assumed to form one group. A single rank
  /// meets copies of itself.
  const std::vector<Match>& pattern_of(const std::map<std::uint32_t, const GroupLine*>& lines) {
    std::vector<const GroupLine*> key;
    for (const auto& [rank, line] : lines) key.push_back(line);
    const auto [found, is_new] = patterns_.try_emplace(key);
    if (!is_new) return found->second;
    if (key.size() == 1) {
      for (const Occurrence& occurrence : key.front()->all)
        found->second.push_back({.sequence = occurrence.sequence,
                                 .members = {{key.front()->rank, occurrence, key.front()->rank}}});
      return found->second;
    }
    RankGroup joint;
    joint.name = "ranks that stand for others";
    for (const GroupLine* line : key) joint.lines.push_back(*line);
    try {
      found->second = matches_in({joint}, ranks_, labels_, notes_);
    } catch (const TraceError& error) {
      notes_.add(
          Severity::warning,
          "ranks that stand for others in one group run different collectives; these keep the "
          "time they took",
          error.what());
    }
    world_.patterns.insert(world_.patterns.end(), found->second.begin(), found->second.end());
    return found->second;
  }

  std::vector<RankGroup>& groups_;
  std::span<const Inference* const> ranks_;
  std::span<const std::string> labels_;
  std::int32_t size_;
  Notes& notes_;
  std::vector<std::map<GroupLayout, const GroupLine*>> lines_;  ///< By recorded rank.
  std::vector<char> is_late_;                                   ///< By recorded rank.
  std::map<const GroupLine*, std::uint32_t> group_of_;
  std::map<std::int32_t, std::uint32_t> index_;  ///< Index into the world, by number of the rank.
  std::map<std::vector<const GroupLine*>, std::vector<Match>> patterns_;
  World world_;
};

}  // namespace

World world_of(std::vector<RankGroup>& groups, std::span<const Inference* const> ranks,
               std::span<const std::string> labels, std::int32_t size, Notes& notes) {
  return WorldFinder(groups, ranks, labels, size, notes).find();
}

}  // namespace foretrace::infer_detail
