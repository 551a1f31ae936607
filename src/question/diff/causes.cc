#include "question/diff/causes.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <map>
#include <string>
#include <tuple>

#include "base/wording.h"
#include "trace/source_frame.h"

namespace foretrace {
namespace {

bool is_device_call(std::string_view name) {
  if (name.starts_with("cuda") || name.starts_with("hip")) return true;
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
}

DiffKind kind_of_task(const Task& task, std::string_view name) {
  if (task.kind == TaskKind::collective) return DiffKind::collectives;
  if (moves_bytes(task.kind)) return DiffKind::copies;
  if (runs_on_device(task.kind)) return DiffKind::kernels;
  if (task.kind == TaskKind::launch) return DiffKind::launches;
  if (task.kind == TaskKind::input) return DiffKind::input;
  if (task.kind == TaskKind::marker) return DiffKind::waits;
  if (task.kind == TaskKind::sync) return name.starts_with('(') ? DiffKind::waits : DiffKind::syncs;
  const bool waits = is_device_call(name) && name.find("Synchronize") != std::string_view::npos;
  return waits ? DiffKind::syncs : DiffKind::host;
}

/// Time from the end of the previous task to the start of this one; negative if they overlap.
Nanoseconds pause_before(const Graph& graph, TaskId task) {
  return graph.task(task).gap - tail_in_front(graph, task);
}

/// The op that a reader knows: the outermost one that belongs to a library or to autograd.
std::string_view library_op(std::string_view path) {
  constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t end = rest.find('/');
    std::string_view op = rest.substr(0, end);
    if (op.starts_with(kEngine)) return op.substr(kEngine.size());
    if (op.find("::") != std::string_view::npos || op.find("Backward") != std::string_view::npos)
      return op;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return path.substr(0, path.find('/'));
}

std::string shortened_name(std::string_view name) {
  constexpr std::size_t kMax = 70;
  if (name.starts_with("void ")) name.remove_prefix(5);
  return shortened(name, kMax);
}

bool same_family(std::string_view a, std::string_view b) {
  const auto letters = [](std::string_view name) {
    std::string kept;
    for (const char c : name) {
      if (c < '0' || c > '9') kept += c;
    }
    return kept;
  };
  return a == b || letters(a) == letters(b);
}

constexpr std::string_view kOthers[] = {"other kernels",          "other replaced kernels",
                                        "other collectives",      "other copies",
                                        "other launches",         "other synchronizations",
                                        "other host work",        "other loading",
                                        "other waits and delays", "the rest"};

class DiffCauseFinder {
 public:
  DiffCauseFinder(UnionGraph& graph, const CauseSide& before, const CauseSide& after,
                  const CauseScope& scope)
      : graph_(graph), before_(before), after_(after), scope_(scope) {
    group({.kind = DiffKind::rest, .label = "the rest"});
  }

  std::vector<DiffCause> find() {
    pair_moved();
    for (UnionTask& task : graph_.tasks()) sort_task(task);
    for (UnionWait& wait : graph_.waits()) sort_wait(wait);
    join_small_ones();
    return std::move(causes_);
  }

 private:
  struct Key {
    DiffKind kind = DiffKind::rest;
    bool structural = false;
    std::string label{}, place{};
    bool moved = false;
    auto tie() const { return std::tie(kind, structural, label, place, moved); }
    bool operator<(const Key& other) const { return tie() < other.tie(); }
  };

  std::uint32_t group(const Key& key) {
    const auto [found, added] =
        groups_.try_emplace(key, static_cast<std::uint32_t>(causes_.size()));
    if (added) {
      causes_.push_back({.kind = key.kind, .label = key.label, .place = key.place});
      weights_.push_back(0);
    }
    return found->second;
  }

  const CauseSide& side_of(const UnionTask& task) const {
    return task.after != kNoTask ? after_ : before_;
  }
  static TaskId id_of(const UnionTask& task) {
    return task.after != kNoTask ? task.after : task.before;
  }
  std::int32_t step_of(const UnionTask& task) const {
    return side_of(task).step[index(id_of(task))];
  }
  bool counts(const UnionTask& task) const {
    const std::int32_t behind = step_of(task) - scope_.step;
    return scope_.step < 0 || (behind >= 0 && behind < scope_.count);
  }

  Key key_of(const UnionTask& task, bool structural) const {
    const CauseSide& side = side_of(task);
    const TaskId id = id_of(task);
    const std::string_view name = side.graph.name(id);
    const std::string_view ops = side.sites == nullptr ? "" : side.sites->op_path(id);
    Key key{.kind = kind_of_task(side.graph.task(id), name), .structural = structural};
    switch (key.kind) {
      case DiffKind::input:
        key.label = "data loading";
        key.structural = false;
        return key;
      case DiffKind::waits:
        key.label = side.graph.task(id).kind == TaskKind::sync ? "threads that wait for threads"
                                                               : "markers";
        key.structural = false;
        return key;
      case DiffKind::syncs:
      case DiffKind::launches:
      case DiffKind::copies:
        key.label = shortened_name(name);
        break;
      case DiffKind::host:
        key.label = ops.empty() ? host_label(side, id, name) : shortened_name(library_op(ops));
        break;
      default:
        key.label = shortened_name(ops.empty() ? name : library_op(ops));
        break;
    }
    if (key.kind == DiffKind::host) key.structural = false;
    if (key.kind == DiffKind::syncs || key.kind == DiffKind::copies || key.structural)
      key.place = place_of(side, id, key.label);
    return key;
  }

  /// Python functions are many and short, so those of one file share a label.
  static std::string host_label(const CauseSide& side, TaskId id, std::string_view name) {
    if (name.starts_with("nn.Module: ")) return "Python of modules";
    if (!source_frame(name) && !name.starts_with("<built-in"))
      return shortened_name(plain_name(name));
    const auto site = side.sites == nullptr ? std::nullopt : side.sites->site(id);
    return site ? "Python in " + site->file : "Python of PyTorch and libraries";
  }

  /// Drops the number of a step, which distinguishes no work.
  static std::string_view plain_name(std::string_view name) {
    return name.starts_with("ProfilerStep#") ? "ProfilerStep" : name;
  }

  static bool label_is_op(const CauseSide& side, TaskId id) {
    const DiffKind kind = kind_of_task(side.graph.task(id), side.graph.name(id));
    return kind == DiffKind::kernels || kind == DiffKind::collectives;
  }

  /// The source line if it is known, otherwise the op, otherwise the module.
  static std::string place_of(const CauseSide& side, TaskId id, const std::string& label) {
    if (side.sites != nullptr) {
      if (const auto site = side.sites->site(id)) return to_text(*site);
      // Kernels are named by their ops already.
      const bool of_op = runs_on_device(side.graph.task(id).kind) && label_is_op(side, id);
      const std::string op(library_op(side.sites->op_path(id)));
      if (of_op) return {};
      if (!op.empty() && op != label) return op;
    }
    return std::string(side.graph.names()[side.graph.task(id).module]);
  }

  void sort_task(UnionTask& task) {
    if (!task.matched()) return sort_single(task);
    const std::string_view was = before_.graph.name(task.before);
    const std::string_view is = after_.graph.name(task.after);
    const bool on_device = runs_on_device(after_.graph.task(task.after).kind);
    const bool replaced = on_device && !same_family(was, is);
    if (replaced || task.duration_before != task.duration_after) {
      Key key = key_of(task, false);
      if (replaced && key.kind == DiffKind::kernels) key.kind = DiffKind::replaced;
      task.group = group(key);
      DiffCause& cause = causes_[task.group];
      if (replaced && cause.name_before.empty()) {
        cause.name_before = shortened_name(was);
        cause.name_after = shortened_name(is);
      }
      add(task.group, task.duration_after - task.duration_before, counts(task));
      if (counts(task)) {
        ++cause.changed;
        cause.bytes += after_.graph.task(task.after).bytes - before_.graph.task(task.before).bytes;
      }
    }
    if (task.gap_before != task.gap_after) {
      const bool host = after_.graph.lane(after_.graph.lane_of(task.after)).device < 0;
      task.gap_group = group({.kind = DiffKind::waits,
                              .label = host ? "pauses of threads without a known cause"
                                            : "pauses of streams without a known cause"});
      add(task.gap_group,
          pause_before(after_.graph, task.after) - pause_before(before_.graph, task.before),
          counts(task));
      if (counts(task)) ++causes_[task.gap_group].changed;
    }
  }

  /// Pairs tasks that only one side has with tasks of the same name and size in the same step of
  /// the other: they moved past others, which a match that keeps the order cannot show.
  void pair_moved() {
    using Identity = std::tuple<std::int32_t, TaskKind, std::int64_t, std::string_view>;
    std::map<Identity, std::array<std::vector<const UnionTask*>, 2>> singles;
    for (const UnionTask& task : graph_.tasks()) {
      if (task.matched() || !is_in_both_scopes(task)) continue;
      const Graph& graph = side_of(task).graph;
      const Task& one = graph.task(id_of(task));
      const Identity identity{step_of(task), one.kind, one.bytes.count, graph.name(id_of(task))};
      singles[identity][task.after == kNoTask ? 0 : 1].push_back(&task);
    }
    for (const auto& [identity, sides] : singles) {
      for (std::size_t i = 0; i < std::min(sides[0].size(), sides[1].size()); ++i) {
        moved_.emplace(sides[0][i], sides[1][i]);
        moved_.emplace(sides[1][i], sides[0][i]);
      }
    }
  }

  bool is_in_both_scopes(const UnionTask& task) const {
    const std::int32_t step = step_of(task);
    return scope_.step < 0 || (step >= scope_.first && step <= scope_.last);
  }

  Key single_key(const UnionTask& task) const {
    const auto found = moved_.find(&task);
    if (found == moved_.end()) return key_of(task, true);
    // Neither side decides, so that the way back has the same groups.
    Key key = std::min(key_of(task, true), key_of(*found->second, true));
    if (!key.structural) return key;
    key.moved = true;
    key.place.clear();
    return key;
  }

  /// Sorts a task that only one side has. Tasks of steps that only one side has stay in group 0.
  void sort_single(UnionTask& task) {
    if (!is_in_both_scopes(task)) return;
    const Key key = single_key(task);
    task.group = group(key);
    task.gap_group = task.group;
    const bool added = task.after != kNoTask;
    const Nanoseconds time = added ? task.duration_after : -task.duration_before;
    add(task.group, time, counts(task));
    if (!counts(task)) return;
    DiffCause& cause = causes_[task.group];
    // A pair that moved counts once.
    if (added || !key.moved) ++(key.moved ? cause.moved : added ? cause.added : cause.removed);
    const Bytes bytes = side_of(task).graph.task(id_of(task)).bytes;
    added ? cause.bytes += bytes : cause.bytes -= bytes;
  }

  void add(std::uint32_t number, Nanoseconds time, bool counted) {
    // Weight of a wait for a device, which matters more than the time of its own call: as much as 1
    // ms. Chosen.
    constexpr std::int64_t kWeightOfWait = 1'000'000;
    const bool waits = causes_[number].kind == DiffKind::syncs;
    weights_[number] += std::abs(time.count()) + (waits ? kWeightOfWait : 1);
    if (counted) causes_[number].local += time;
  }

  void sort_wait(UnionWait& wait) {
    const UnionTask& from = graph_.tasks()[wait.from];
    const UnionTask& to = graph_.tasks()[wait.to];
    if (!from.matched() || !to.matched()) return;
    const bool same = wait.in_before && wait.in_after;
    if (same && wait.lag_before == wait.lag_after) return;
    if (!same) {
      const auto path = graph_.path_between(wait, search_);
      if (path) {
        wait.group = graph_.tasks()[path->first].group;
        wait.other_group = graph_.tasks()[path->last].group;
        return;
      }
    }
    const std::string_view why = wait.in_after ? to_string(wait.why_after, after_.graph.names())
                                               : to_string(wait.why_before, before_.graph.names());
    const bool of_step = counts(to);
    wait.group = group({.kind = DiffKind::waits,
                        .structural = !same,
                        .label = fmt::format("{} ({})", same ? "delay of waits" : "waits", why)});
    wait.other_group = wait.group;
    add(wait.group,
        wait.lag_after.past_finish(from.duration_after) -
            wait.lag_before.past_finish(from.duration_before),
        of_step && same);
    if (!of_step) return;
    DiffCause& cause = causes_[wait.group];
    ++(same ? cause.changed : wait.in_after ? cause.added : cause.removed);
  }

  void join_small_ones() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 1; i < causes_.size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return weights_[a] > weights_[b]; });
    std::vector<std::uint32_t> becomes(causes_.size(), 0);
    std::vector<DiffCause> kept{std::move(causes_[0])};
    std::map<DiffKind, std::uint32_t> others;
    // Groups are numbered in an order that does not depend on which side is which.
    std::vector<char> is_kept(causes_.size(), 0);
    for (std::size_t i = 0; i < std::min(order.size(), scope_.most); ++i) is_kept[order[i]] = 1;
    for (const auto& [key, number] : groups_) {
      if (number == 0) continue;
      if (is_kept[number] != 0) {
        becomes[number] = static_cast<std::uint32_t>(kept.size());
        kept.push_back(std::move(causes_[number]));
        continue;
      }
      const auto [found, added] =
          others.try_emplace(key.kind, static_cast<std::uint32_t>(kept.size()));
      if (added) {
        kept.push_back({.kind = key.kind, .label = {}, .place = {}});
        kept.back().label = kOthers[static_cast<std::size_t>(key.kind)];
      }
      becomes[number] = found->second;
      join(causes_[number], kept[found->second]);
    }
    causes_ = std::move(kept);
    for (UnionTask& task : graph_.tasks()) {
      task.group = becomes[task.group];
      task.gap_group = becomes[task.gap_group];
    }
    for (UnionWait& wait : graph_.waits()) {
      wait.group = becomes[wait.group];
      wait.other_group = becomes[wait.other_group];
    }
  }

  static void join(const DiffCause& small, DiffCause& all) {
    all.added += small.added;
    all.removed += small.removed;
    all.moved += small.moved;
    all.changed += small.changed;
    all.bytes += small.bytes;
    all.local += small.local;
  }

  UnionGraph& graph_;
  const CauseSide& before_;
  const CauseSide& after_;
  CauseScope scope_;
  std::map<Key, std::uint32_t> groups_;
  /// By task of one side: its counterpart at another place.
  std::map<const UnionTask*, const UnionTask*> moved_;
  std::vector<DiffCause> causes_;
  std::vector<std::int64_t> weights_;
  PathSearch search_;
};

}  // namespace

std::vector<DiffCause> find_causes(UnionGraph& graph, const CauseSide& before,
                                   const CauseSide& after, const CauseScope& scope) {
  return DiffCauseFinder(graph, before, after, scope).find();
}

}  // namespace foretrace
