#include "analysis/match/match.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "base/align.h"
#include "trace/step_name.h"

namespace foretrace {
namespace {

using Positions = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

constexpr std::size_t kMaxDifferences = 600;

/// Drops the engine's prefix, so that "autograd::engine::evaluate_function: AddmmBackward0" equals
/// the op AddmmBackward0 inside it.
std::string_view without_engine(std::string_view op) {
  constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
  return op.starts_with(kEngine) ? op.substr(kEngine.size()) : op;
}

/// "void gemm_128x64<float, 4>(int)" -> "void gemm_x".
std::string family_of(std::string_view name) {
  std::string family;
  for (const char c : name.substr(0, name.find_first_of("<("))) {
    if (c < '0' || c > '9') family += c;
  }
  return family.empty() ? std::string(name) : family;
}

std::uint64_t combined_hash(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ULL + b;
  x ^= x >> 30U;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27U;
  return x * 0x94d049bb133111ebULL;
}

/// Longest subset of the pairs, sorted by first position, in which second positions increase.
Positions increasing_pairs(const Positions& pairs) {
  std::vector<std::size_t> ends;  ///< Index of the pair that ends the best subset of each length.
  std::vector<std::size_t> previous(pairs.size(), SIZE_MAX);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto place = std::lower_bound(
        ends.begin(), ends.end(), pairs[i].second,
        [&](std::size_t end, std::uint32_t value) { return pairs[end].second < value; });
    if (place != ends.begin()) previous[i] = *(place - 1);
    if (place == ends.end()) {
      ends.push_back(i);
    } else {
      *place = i;
    }
  }
  Positions kept;
  for (std::size_t i = ends.empty() ? SIZE_MAX : ends.back(); i != SIZE_MAX; i = previous[i])
    kept.push_back(pairs[i]);
  std::reverse(kept.begin(), kept.end());
  return kept;
}

/// Pairs the first occurrence of a key with the first, the second with the second and so on, as far
/// as order allows; for sequences with too little in common for an exact search.
Positions by_occurrence(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> places;
  for (std::size_t i = 0; i < b.size(); ++i) places[b[i]].push_back(static_cast<std::uint32_t>(i));
  std::unordered_map<std::uint64_t, std::size_t> used;
  Positions pairs;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto found = places.find(a[i]);
    if (found == places.end()) continue;
    std::size_t& next = used[a[i]];
    if (next < found->second.size())
      pairs.emplace_back(static_cast<std::uint32_t>(i), found->second[next++]);
  }
  return increasing_pairs(pairs);
}

Positions matching_positions(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  if (a.empty() || b.empty()) return {};
  const std::size_t most = std::min(kMaxDifferences, a.size() + b.size());
  if (auto pairs = align(a, b, most)) return std::move(*pairs);
  return by_occurrence(a, b);
}

/// The tasks of one lane in order, with their identities.
struct LaneTasks {
  const MatchSide& side;
  std::vector<TaskId> tasks;

  LaneTasks(const MatchSide& of, LaneId lane) : side(of) {
    for (TaskId task = of.graph.first(lane); task != kNoTask; task = of.graph.next(task))
      tasks.push_back(task);
  }
  std::uint32_t place(std::size_t i) const { return side.keys.place[index(tasks[i])]; }
  std::uint32_t name(std::size_t i) const { return side.keys.name[index(tasks[i])]; }
  /// Family of a task without a known op, which could otherwise match any other kernel; 0 for tasks
  /// with a place.
  std::uint64_t family_unplaced(std::size_t i) const {
    const bool placed = side.keys.has_place[index(tasks[i])] != 0;
    return placed ? 0 : (std::uint64_t{side.keys.family[index(tasks[i])]} + 1) << 8U;
  }
  std::int32_t step(std::size_t i) const { return side.keys.step[index(tasks[i])]; }
  TaskKind kind(std::size_t i) const { return side.graph.task(tasks[i]).kind; }
};

struct Range {
  std::size_t begin = 0, end = 0;
};

class LaneMatcher {
 public:
  LaneMatcher(const DiffKeys& keys, const LaneTasks& before, const LaneTasks& after,
              Matching& matching)
      : keys_(keys), before_(before), after_(after), matching_(matching) {}

  void match() {
    match_runs({0, before_.tasks.size()}, {0, after_.tasks.size()}, 0);
    // First match tasks at the same place with other names, then tasks of the same name at other
    // places.
    match_unmatched([](const LaneTasks& lane, std::size_t i) {
      return combined_hash(lane.place(i),
                           static_cast<std::uint64_t>(lane.kind(i)) + lane.family_unplaced(i));
    });
    match_unmatched([](const LaneTasks& lane, std::size_t i) {
      return combined_hash(lane.name(i), static_cast<std::uint64_t>(lane.kind(i)) + 1000);
    });
  }

 private:
  struct Runs {
    std::vector<std::uint64_t> keys;
    std::vector<Range> ranges;
    std::vector<char> is_task;  ///< Whether it is a single task, not a run of nested ones.
  };

  /// Key of the part of the job that contains a task at a depth, where 0 is the step, and whether
  /// it is the task itself.
  std::pair<std::uint64_t, bool> key_at(const LaneTasks& lane, std::size_t i,
                                        std::size_t depth) const {
    if (depth == 0) return {static_cast<std::uint64_t>(lane.step(i) + 1), false};
    const std::vector<std::uint32_t>& parts = keys_.parts(lane.place(i));
    if (depth <= parts.size()) return {combined_hash(parts[depth - 1], 1), false};
    return {combined_hash(lane.name(i), static_cast<std::uint64_t>(lane.kind(i)) + 2), true};
  }

  Runs runs_of(const LaneTasks& lane, Range range, std::size_t depth) const {
    Runs runs;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto [key, is_task] = key_at(lane, i, depth);
      const bool goes_on =
          !is_task && !runs.keys.empty() && runs.is_task.back() == 0 && runs.keys.back() == key;
      if (goes_on) {
        runs.ranges.back().end = i + 1;
        continue;
      }
      runs.keys.push_back(key);
      runs.ranges.push_back({i, i + 1});
      runs.is_task.push_back(is_task ? 1 : 0);
    }
    return runs;
  }

  void match_runs(Range before, Range after, std::size_t depth) {
    const Runs left = runs_of(before_, before, depth);
    const Runs right = runs_of(after_, after, depth);
    for (const auto& [a, b] : matching_positions(left.keys, right.keys)) {
      if (left.is_task[a] != right.is_task[b]) continue;
      if (left.is_task[a] != 0) {
        pair(left.ranges[a].begin, right.ranges[b].begin);
      } else {
        match_runs(left.ranges[a], right.ranges[b], depth + 1);
      }
    }
  }

  void pair(std::size_t a, std::size_t b) {
    matching_.after_of[index(before_.tasks[a])] = after_.tasks[b];
    matching_.before_of[index(after_.tasks[b])] = before_.tasks[a];
  }

  /// Matches the tasks that are left over between matched neighbours by another key.
  template <class Key>
  void match_unmatched(const Key& key) {
    std::unordered_map<std::uint32_t, std::size_t> place_of;
    for (std::size_t i = 0; i < after_.tasks.size(); ++i) place_of[index(after_.tasks[i])] = i;
    std::size_t a = 0, b = 0;
    Positions found;
    while (a < before_.tasks.size() || b < after_.tasks.size()) {
      const std::size_t begin_a = a, begin_b = b;
      while (a < before_.tasks.size() && !partner(a)) ++a;
      const std::size_t end_b = a < before_.tasks.size()
                                    ? place_of[index(matching_.after_of[index(before_.tasks[a])])]
                                    : after_.tasks.size();
      match_gap({begin_a, a}, {begin_b, end_b}, key, found);
      b = end_b + (a < before_.tasks.size() ? 1 : 0);
      if (a < before_.tasks.size()) ++a;
    }
    for (const auto& [left, right] : found) pair(left, right);
  }

  bool partner(std::size_t a) const {
    return matching_.after_of[index(before_.tasks[a])] != kNoTask;
  }

  template <class Key>
  void match_gap(Range before, Range after, const Key& key, Positions& found) const {
    if (before.begin == before.end || after.begin == after.end) return;
    const auto keys_of = [&](const LaneTasks& lane, Range range) {
      std::vector<std::uint64_t> keys;
      for (std::size_t i = range.begin; i < range.end; ++i)
        keys.push_back(combined_hash(key(lane, i), static_cast<std::uint64_t>(lane.step(i) + 1)));
      return keys;
    };
    for (const auto& [a, b] :
         matching_positions(keys_of(before_, before), keys_of(after_, after))) {
      found.emplace_back(static_cast<std::uint32_t>(before.begin + a),
                         static_cast<std::uint32_t>(after.begin + b));
    }
  }

  const DiffKeys& keys_;
  const LaneTasks& before_;
  const LaneTasks& after_;
  Matching& matching_;
};

/// How often each key occurs on a lane.
using KeyCounts = std::unordered_map<std::uint64_t, std::int64_t>;

KeyCounts key_counts(const MatchSide& side, LaneId lane) {
  KeyCounts counts;
  for (TaskId task = side.graph.first(lane); task != kNoTask; task = side.graph.next(task)) {
    const TaskKind kind = side.graph.task(task).kind;
    ++counts[combined_hash(side.keys.name[index(task)], static_cast<std::uint64_t>(kind) + 1)];
    ++counts[combined_hash(side.keys.place[index(task)], static_cast<std::uint64_t>(kind) + 500)];
  }
  return counts;
}

/// Pairs lanes of the same role that have the most tasks in common; a lane of the same name counts
/// slightly more.
std::vector<LanePair> match_lanes(const MatchSide& before, const MatchSide& after) {
  struct LaneCandidate {
    std::int64_t common;
    std::uint32_t a, b;
  };
  using LaneRole = std::tuple<LaneKind, bool>;
  const auto role = [](const Lane& lane) { return LaneRole(lane.kind, lane.device >= 0); };
  std::vector<KeyCounts> counts_after;
  for (std::uint32_t b = 0; b < after.graph.lane_count(); ++b)
    counts_after.push_back(key_counts(after, LaneId{b}));
  std::vector<LaneCandidate> candidates;
  for (std::uint32_t a = 0; a < before.graph.lane_count(); ++a) {
    const KeyCounts counts = key_counts(before, LaneId{a});
    for (std::uint32_t b = 0; b < after.graph.lane_count(); ++b) {
      const Lane& right = after.graph.lane(LaneId{b});
      if (role(before.graph.lane(LaneId{a})) != role(right)) continue;
      const KeyCounts& other = counts_after[b];
      std::int64_t common = 0;
      for (const auto& [key, count] : counts) {
        const auto found = other.find(key);
        if (found != other.end()) common += std::min(count, found->second);
      }
      const bool same_name = before.graph.lane(LaneId{a}).name == right.name;
      candidates.push_back({2 * common + (same_name ? 1 : 0), a, b});
    }
  }
  std::stable_sort(
      candidates.begin(), candidates.end(), [](const LaneCandidate& x, const LaneCandidate& y) {
        return std::tuple(-x.common, x.a + x.b, x.a) < std::tuple(-y.common, y.a + y.b, y.a);
      });
  std::vector<char> taken_a(before.graph.lane_count(), 0), taken_b(after.graph.lane_count(), 0);
  std::vector<LanePair> pairs;
  for (const LaneCandidate& candidate : candidates) {
    if (taken_a[candidate.a] != 0 || taken_b[candidate.b] != 0 || candidate.common == 0) continue;
    taken_a[candidate.a] = taken_b[candidate.b] = 1;
    pairs.push_back({LaneId{candidate.a}, LaneId{candidate.b}});
  }
  for (std::uint32_t a = 0; a < taken_a.size(); ++a) {
    if (taken_a[a] == 0) pairs.push_back({LaneId{a}, kNoLane});
  }
  for (std::uint32_t b = 0; b < taken_b.size(); ++b) {
    if (taken_b[b] == 0) pairs.push_back({kNoLane, LaneId{b}});
  }
  return pairs;
}

}  // namespace

std::uint32_t DiffKeys::place(std::string_view module, std::string_view ops) {
  const auto [found, added] = place_numbers_.try_emplace(
      std::string(module) + '\n' + std::string(ops), static_cast<std::uint32_t>(places_.size()));
  if (!added) return found->second;
  std::vector<std::uint32_t> parts;
  for (std::string_view rest : {module, ops}) {
    while (!rest.empty()) {
      const std::size_t end = rest.find('/');
      const std::uint32_t part = text(without_engine(rest.substr(0, end)));
      if (parts.empty() || parts.back() != part) parts.push_back(part);
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  }
  places_.push_back(std::move(parts));
  return found->second;
}

KnownPlaces known_places(const Graph& graph, const CallSites* sites) {
  KnownPlaces known;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    known.modules = known.modules || graph.task(TaskId{i}).module != NameId{};
    known.ops = known.ops || (sites != nullptr && !sites->op_path(TaskId{i}).empty());
  }
  return known;
}

TaskKeys task_keys(const KeyedSide& side, const KnownPlaces& known, DiffKeys& keys) {
  const Graph& graph = side.graph;
  const std::size_t count = graph.task_count();
  TaskKeys all{.place = std::vector<std::uint32_t>(count),
               .name = std::vector<std::uint32_t>(count),
               .family = std::vector<std::uint32_t>(count),
               .has_place = std::vector<char>(count),
               .step = std::vector<std::int32_t>(count)};
  std::vector<std::uint32_t> names(graph.names().size(), kNone), families(names.size());
  // Places are few. They are looked up by the addresses of their texts, each of which exists once.
  std::unordered_map<std::uint64_t, std::uint32_t> places;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Task& task = graph.task(TaskId{i});
    std::uint32_t& name = names[static_cast<std::size_t>(task.name)];
    if (name == kNone) {
      const std::string_view text = graph.names()[task.name];
      name = keys.text(step_name(text) ? "step" : text);
      families[static_cast<std::size_t>(task.name)] = keys.text(family_of(text));
    }
    all.name[i] = name;
    all.family[i] = families[static_cast<std::size_t>(task.name)];
    const std::string_view ops = known.ops ? side.sites->op_path(TaskId{i}) : "";
    const NameId module = known.modules ? task.module : NameId{};
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(ops.data()));
    const auto [found, added] =
        places.try_emplace(combined_hash(address, static_cast<std::uint64_t>(module)), 0);
    if (added) found->second = keys.place(graph.names()[module], ops);
    all.place[i] = found->second;
    all.has_place[i] = keys.parts(found->second).empty() ? 0 : 1;
    all.step[i] = task.step < 0 ? -1 : std::max(0, task.step + side.shift);
  }
  return all;
}

Matching match_tasks(const MatchSide& before, const MatchSide& after, const DiffKeys& keys) {
  Matching matching{
      .after_of = std::vector<TaskId>(before.graph.task_count(), kNoTask),
      .before_of = std::vector<TaskId>(after.graph.task_count(), kNoTask),
      .lanes = match_lanes(before, after),
  };
  for (const LanePair& pair : matching.lanes) {
    if (pair.before == kNoLane || pair.after == kNoLane) continue;
    const LaneTasks left(before, pair.before), right(after, pair.after);
    LaneMatcher(keys, left, right, matching).match();
  }
  return matching;
}

}  // namespace foretrace
