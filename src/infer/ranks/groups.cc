#include "infer/ranks/groups.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/hash.h"
#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace::infer_detail {
namespace {

/// Whether all ranks contribute the same number of elements. Exchanges of all with all may be
/// uneven, and only the root of a gather or scatter has the whole.
bool has_equal_parts(const std::string& operation) {
  for (const char* uneven : {"alltoall", "all_to_all", "send", "recv", "gather", "scatter"}) {
    if (operation.find(uneven) == std::string::npos) continue;
    return operation.find("allgather") != std::string::npos ||
           operation.find("reduce_scatter") != std::string::npos;
  }
  return true;
}

bool sends(std::string_view operation) { return operation == "send" || operation == "isend"; }
bool receives(std::string_view operation) { return operation == "recv" || operation == "irecv"; }

/// Returns the operation under a name common to all members: a message is a send on one side and a
/// receive on the other.
std::string common_operation(std::string_view recorded) {
  std::string operation = lower_case(recorded);
  return sends(operation) || receives(operation) ? "send and receive" : operation;
}

std::vector<std::int32_t> members_in(std::string_view text) {
  std::vector<std::int32_t> members;
  std::int64_t number = -1;
  for (const char letter : text) {
    if (letter >= '0' && letter <= '9') {
      number = std::min<std::int64_t>(std::max<std::int64_t>(number, 0) * 10 + (letter - '0'),
                                      INT32_MAX);
    } else if (letter == '.') {
      return {};  // The profiler abbreviated a long list.
    } else if (number >= 0) {
      members.push_back(static_cast<std::int32_t>(std::exchange(number, -1)));
    }
  }
  std::sort(members.begin(), members.end());
  return members;
}

/// The members and the name of the group. The number is the stream for a group that was not
/// recorded; for messages it tells which of the two members receives them, from 1 on, because each
/// direction has its own order.
using GroupKey = std::tuple<std::vector<std::int32_t>, std::string, std::uint32_t>;

class GroupFinder {
 public:
  GroupFinder(std::span<const Inference* const> ranks, std::span<const std::string> labels)
      : ranks_(ranks), labels_(labels) {}

  std::vector<RankGroup> find() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) add_rank(rank);
    pair_streams();
    std::vector<RankGroup> all;
    for (auto& [key, group] : groups_) all.push_back(std::move(group));
    return all;
  }

 private:
  void add_rank(std::uint32_t rank) {
    const Inference& from = *ranks_[rank];
    const Names& names = from.graph.names();
    std::map<LaneId, GroupLine> unnamed;
    for (std::uint32_t i = 0; i < from.graph.collectives().size(); ++i) {
      const RecordedCollective& collective = from.graph.collectives()[i];
      if (collective.group_size == 1) continue;  // A rank alone waits for nobody.
      const Occurrence found = occurrence(from, i);
      const std::vector<std::int32_t> members = members_in(names[collective.members]);
      const std::string name(names[collective.group]);
      if (members.empty() && name.empty()) {
        GroupLine& line = unnamed[from.graph.lane_of(collective.task)];
        line.rank = rank;
        line.all.push_back(found);
        continue;
      }
      if (members.size() == 1) continue;
      const std::uint32_t end = end_of_message(from, collective, members);
      RankGroup& group = groups_[{members, name, end}];
      check_size(group, members, name, collective, rank);
      if (end > 0) {
        group.receiver = members[end - 1];
        group.name =
            fmt::format("messages from rank {} to rank {}", members[2 - end], group.receiver);
      }
      if (group.lines.empty() || group.lines.back().rank != rank) group.lines.push_back({rank, {}});
      group.lines.back().all.push_back(found);
    }
    for (auto& [lane, line] : unnamed) unnamed_[rank].push_back(std::move(line));
  }

  /// Returns which of the two members receives the message, from 1 on; 0 if it is no message
  /// between two known ranks.
  static std::uint32_t end_of_message(const Inference& from, const RecordedCollective& collective,
                                      const std::vector<std::int32_t>& members) {
    const std::string operation = lower_case(from.graph.names()[collective.operation]);
    if (members.size() != 2 || (!sends(operation) && !receives(operation))) return 0;
    if (std::ranges::find(members, from.rank.number) == members.end()) return 0;
    const bool is_first = from.rank.number == members[0];
    return is_first == sends(operation) ? 2 : 1;
  }

  static Occurrence occurrence(const Inference& from, std::uint32_t number) {
    const RecordedCollective& collective = from.graph.collectives()[number];
    const Names& names = from.graph.names();
    const std::string operation = common_operation(names[collective.operation]);
    Occurrence found{.number = number};
    found.key = hash_of(operation, hash_of(names[collective.type]));
    if (has_equal_parts(operation))
      found.key = hash_of(std::to_string(collective.elements), found.key);
    const Task& task = from.graph.task(collective.task);
    if (task.step >= 0)
      found.step = hash_of(from.graph.steps()[static_cast<std::size_t>(task.step)].name);
    const std::int64_t origin = from.rank.origin.count();
    found.finish = origin + from.recorded.finish[index(collective.task)].count();
    found.sequence = collective.sequence;
    return found;
  }

  void check_size(RankGroup& group, const std::vector<std::int32_t>& members,
                  const std::string& name, const RecordedCollective& collective,
                  std::uint32_t rank) {
    const std::int64_t size = collective.group_size > 0 ? collective.group_size
                                                        : static_cast<std::int64_t>(members.size());
    if (group.size == 0) {
      group.size = size;
      group.name = members.empty() ? fmt::format("group \"{}\"", name) : words_for(members);
      group.members = members;
    }
    if (size == group.size || size == 0) return;
    throw TraceError(fmt::format(
        "{}: it recorded {} as {} ranks, but {} recorded {}; give ranks of one job", labels_[rank],
        group.name, size, labels_[group.lines.front().rank], group.size));
  }

  /// Pairs the streams of different ranks, which need not have the same number on each rank.
  void pair_streams() {
    if (unnamed_.empty()) return;
    auto most = unnamed_.begin();
    for (auto it = unnamed_.begin(); it != unnamed_.end(); ++it) {
      if (it->second.size() > most->second.size()) most = it;
    }
    const std::uint32_t reference = most->first;
    const std::vector<GroupLine> streams = most->second;
    for (std::uint32_t i = 0; i < streams.size(); ++i) {
      RankGroup& group = groups_[{{}, {}, i + 1}];
      group.name = "all ranks";
    }
    for (auto& [rank, lines] : unnamed_) {
      std::vector<char> taken(streams.size(), 0);
      std::stable_sort(lines.begin(), lines.end(), [](const GroupLine& a, const GroupLine& b) {
        return a.all.size() > b.all.size();
      });
      for (GroupLine& line : lines) {
        const std::size_t stream =
            rank == reference ? stream_with(streams, line) : best_stream(streams, line, taken);
        if (stream == streams.size()) continue;
        taken[stream] = 1;
        groups_[{{}, {}, static_cast<std::uint32_t>(stream) + 1}].lines.push_back(std::move(line));
      }
    }
    for (auto& [key, group] : groups_) {
      std::stable_sort(group.lines.begin(), group.lines.end(),
                       [](const GroupLine& a, const GroupLine& b) { return a.rank < b.rank; });
    }
  }

  static std::size_t stream_with(const std::vector<GroupLine>& streams, const GroupLine& line) {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].all.front().number == line.all.front().number) return i;
    }
    return streams.size();
  }

  /// Returns the free stream in which most collectives have a partner; if none fits, the first free
  /// one.
  static std::size_t best_stream(const std::vector<GroupLine>& streams, const GroupLine& line,
                                 const std::vector<char>& taken) {
    if (streams.size() == 1) return taken[0] != 0 ? 1 : 0;
    std::size_t best = streams.size();
    std::int64_t most = -1;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (taken[i] != 0) continue;
      std::size_t differs = 0;
      std::int64_t fit = 0;
      for (const std::int64_t position : positions_in(line, streams[i], differs)) {
        if (position >= 0 && position < static_cast<std::int64_t>(streams[i].all.size())) ++fit;
      }
      if (fit > most) most = fit, best = i;
    }
    return best;
  }

  std::span<const Inference* const> ranks_;
  std::span<const std::string> labels_;
  std::map<GroupKey, RankGroup> groups_;
  std::map<std::uint32_t, std::vector<GroupLine>> unnamed_;  ///< By rank: a line for each stream.
};

}  // namespace

std::string words_for(const std::vector<std::int32_t>& members) {
  constexpr std::size_t kMaxListed = 8;
  std::string text = "ranks ";
  for (std::size_t i = 0; i < std::min(members.size(), kMaxListed); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(members[i]);
  if (members.size() > kMaxListed) text += fmt::format(" ... ({} ranks)", members.size());
  return text;
}

std::vector<RankGroup> groups_of(std::span<const Inference* const> ranks,
                                 std::span<const std::string> labels) {
  return GroupFinder(ranks, labels).find();
}

std::string described(const Inference& rank, const Occurrence& occurrence) {
  const RecordedCollective& recorded = rank.graph.collectives()[occurrence.number];
  const Names& names = rank.graph.names();
  const std::string_view operation = names[recorded.operation];
  if (recorded.elements < 0) return std::string(operation);
  if (recorded.type == NameId{}) return fmt::format("{} of {}", operation, recorded.elements);
  return fmt::format("{} of {} {}", operation, recorded.elements, lower_case(names[recorded.type]));
}

}  // namespace foretrace::infer_detail
